"""Streams from the server at the given address with the official client, and
prints the parsed result. Pass a second argument if the server accepts no
token ids."""

import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
messages = [{"role": "user", "content": "a b c"}]
heard = {}


def chat(**more):
    text, finish, usage = "", None, None
    for chunk in client.chat.completions.create(
        model="m", messages=messages, max_tokens=4, stream=True, stream_options={"include_usage": True}, **more
    ):
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
            finish = chunk.choices[0].finish_reason or finish
        if chunk.usage:
            usage = chunk.usage.completion_tokens or usage
    return {"text": text, "finish": finish, "usage": usage}


heard["openai chat"] = chat()
for fault in ["trickle", "merge", "early-role", "huge"]:
    heard["openai chat " + fault] = chat(extra_headers={"X-Sim-Fault": fault})
for fault in ["429", "503", "error", "malformed", "reset:2"]:
    try:
        chat(extra_headers={"X-Sim-Fault": fault})
        heard["openai fails at " + fault] = {"text": "it did not"}
    except Exception:
        heard["openai fails at " + fault] = {"finish": "failed"}

takes_ids = len(sys.argv) < 3
text, finish, usage = "", None, None
for chunk in client.completions.create(
    model="m", prompt=[1, 2, 3] if takes_ids else "a b c", max_tokens=4, stream=True, stream_options={"include_usage": True}
):
    if chunk.choices:
        text += chunk.choices[0].text
        finish = chunk.choices[0].finish_reason or finish
    if chunk.usage:
        usage = chunk.usage.completion_tokens
heard["openai completions" + (" of ids" if takes_ids else "")] = {"text": text, "finish": finish, "usage": usage}

text = ""
for event in client.responses.create(model="m", input="a b c", max_output_tokens=4, stream=True):
    if event.type == "response.output_text.delta":
        text += event.delta
    last = event
heard["openai responses"] = {
    "text": text,
    "finish": last.response.incomplete_details.reason,
    "usage": last.response.usage.output_tokens,
}
r = client.embeddings.create(model="m", input=["a b", "c"])
heard["openai embeddings"] = {"text": f"{len(r.data)} of {len(r.data[0].embedding)}", "usage": r.usage.prompt_tokens}
print(json.dumps(heard))

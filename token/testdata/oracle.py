"""Answers each JSON line with one JSON line: the ids of the reference implementations for a text."""
import json
import sys
import time


def hugging_face(path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def answer(request):
        texts, special = request["texts"], request.get("special", False)
        encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=special)
        ids = [e.ids for e in encodings]
        out = {"ids": ids}
        if request.get("decode"):
            out["decoded"] = tokenizer.decode_batch(ids, skip_special_tokens=False)
            out["skipped"] = tokenizer.decode_batch(ids, skip_special_tokens=True)
        return out

    def speed(text, repeat):
        best = None
        for _ in range(repeat):
            start = time.process_time()
            count = len(tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids)
            spent = time.process_time() - start
            best = spent if best is None else min(best, spent)
        return {"cpu_seconds": best, "count": count}

    return answer, speed


def sentence_piece(path):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=path)

    def answer(request):
        ids = [processor.encode(t) for t in request["texts"]]
        return {"ids": ids, "decoded": [processor.decode(i) for i in ids]}

    return answer, None


def tik_token(request):
    import base64

    import tiktoken
    from tiktoken_ext import openai_public

    def ranks(*_, **__):
        with open(request["file"], "rb") as f:
            return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in f if line.strip())}

    # The patterns and special tokens are the reference's own. Only the ranks, which it would download, come from the file.
    openai_public.load_tiktoken_bpe = ranks
    openai_public.data_gym_to_mergeable_bpe_ranks = ranks
    if "pattern" in request:
        encoding = tiktoken.Encoding(request["encoding"], pat_str=request["pattern"], mergeable_ranks=ranks(),
                                     special_tokens=request["specials"])
    else:
        encoding = tiktoken.Encoding(**getattr(openai_public, request["encoding"])())

    def answer(request):
        ids = [encoding.encode(t, allowed_special="all") for t in request["texts"]]
        return {"ids": ids, "decoded": [encoding.decode(i) for i in ids]}

    return answer, None


def tekken(path):
    import os

    installed = os.path.dirname(os.path.dirname(os.path.dirname(sys.executable)))
    sys.path += [f"{installed}/extra", f"{installed}/tekken"]
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tokenizer = Tekkenizer.from_file(path)

    def answer(request):
        if "ids" in request:
            return {"decoded": [tokenizer.id_to_piece(i) for i in range(tokenizer.num_special_tokens)]}
        ids = [tokenizer.encode(t, bos=request.get("special", False), eos=False) for t in request["texts"]]
        return {"ids": ids, "decoded": [tokenizer.decode(i) for i in ids]}

    return answer, None


def tik_token_names(request):
    from tiktoken.model import encoding_name_for_model

    def name(model):
        try:
            return encoding_name_for_model(model)
        except KeyError:
            return ""

    return {"decoded": [name(model) for model in request["texts"]]}


def jinja(request):
    import datetime

    from jinja2.exceptions import TemplateError
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message):
        raise TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    now = datetime.datetime.fromisoformat(request["now"])
    env.globals["strftime_now"] = now.strftime
    try:
        return {"text": env.from_string(request["template"]).render(**request["variables"])}
    except Exception as error:
        return {"error": str(error) or type(error).__name__}


def normal_form(request):
    from tokenizers import normalizers

    normalize = getattr(normalizers, request["form"])().normalize_str
    return {"decoded": [normalize(text) for text in request["texts"]]}


answers = {"jinja": jinja, "tiktoken names": tik_token_names, "normal form": normal_form}


def main():
    loaded = {}
    for line in sys.stdin:
        request = json.loads(line)
        kind = request["kind"]
        if kind in answers:
            print(json.dumps(answers[kind](request)), flush=True)
            continue
        key = (kind, request["file"])
        if key not in loaded:
            loaded.clear()
            if kind == "huggingface":
                loaded[key] = hugging_face(request["file"])
            elif kind == "tekken":
                loaded[key] = tekken(request["file"])
            elif kind == "sentencepiece":
                loaded[key] = sentence_piece(request["file"])
            else:
                loaded[key] = tik_token(request)
        answer, speed = loaded[key]
        if "repeat" in request:
            print(json.dumps(speed(request["texts"][0], request["repeat"])), flush=True)
        else:
            print(json.dumps(answer(request)), flush=True)


main()

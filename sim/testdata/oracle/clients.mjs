// Streams from the server at the address given with the official clients, and
// prints what each of them made of it.
import OpenAI from 'openai'
import Anthropic from '@anthropic-ai/sdk'
import { Ollama } from 'ollama'

const base = process.argv[2]
const messages = [{ role: 'user', content: 'a b c' }]
const heard = {}
const openai = new OpenAI({ baseURL: base + '/v1', apiKey: 'none', maxRetries: 0 })

async function chat (options) {
  let text = ''; let finish = null; let usage = null
  const stream = await openai.chat.completions.create(
    { model: 'm', messages, max_tokens: 4, stream: true, stream_options: { include_usage: true } }, options)
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? ''
    finish = chunk.choices[0]?.finish_reason || finish
    usage = chunk.usage?.completion_tokens || usage
  }
  return { text, finish, usage }
}

heard['openai chat'] = await chat()
for (const fault of ['trickle', 'merge', 'early-role', 'huge']) {
  heard['openai chat ' + fault] = await chat({ headers: { 'X-Sim-Fault': fault } })
}
for (const fault of ['429', '503', 'error', 'malformed', 'reset:2']) {
  try {
    await chat({ headers: { 'X-Sim-Fault': fault } })
    heard['openai fails at ' + fault] = { text: 'it did not' }
  } catch (e) {
    heard['openai fails at ' + fault] = { finish: 'failed' }
  }
}
{
  let text = ''; let finish = null; let usage = null
  const stream = await openai.completions.create(
    { model: 'm', prompt: 'a b c', max_tokens: 4, stream: true, stream_options: { include_usage: true } })
  for await (const chunk of stream) {
    text += chunk.choices[0]?.text ?? ''
    finish = chunk.choices[0]?.finish_reason || finish
    usage = chunk.usage?.completion_tokens || usage
  }
  heard['openai completions'] = { text, finish, usage }
}
{
  const r = await openai.chat.completions.create({ model: 'm', messages, max_tokens: 4 })
  heard['openai chat whole'] = { text: r.choices[0].message.content, finish: r.choices[0].finish_reason, usage: r.usage.completion_tokens }
}
{
  const stream = openai.responses.stream({ model: 'm', input: 'a b c', max_output_tokens: 4 })
  let text = ''
  stream.on('response.output_text.delta', e => { text += e.delta })
  const r = await stream.finalResponse()
  if (r.output_text !== text) throw new Error(`${r.output_text} is not ${text}`)
  heard['openai responses'] = { text, finish: r.incomplete_details?.reason ?? r.status, usage: r.usage.output_tokens }
}
{
  const r = await openai.embeddings.create({ model: 'm', input: ['a b', 'c'] })
  heard['openai embeddings'] = { text: `${r.data.length} of ${r.data[0].embedding.length}`, usage: r.usage.prompt_tokens }
  const models = await openai.models.list()
  heard['openai models'] = { text: models.data[0].id }
}
{
  const anthropic = new Anthropic({ baseURL: base, apiKey: 'none', maxRetries: 0 })
  let text = ''
  const stream = anthropic.messages.stream({ model: 'm', max_tokens: 4, messages }).on('text', t => { text += t })
  const m = await stream.finalMessage()
  if (m.content[0].text !== text) throw new Error(`${m.content[0].text} is not ${text}`)
  heard.anthropic = { text, finish: m.stop_reason, usage: m.usage.output_tokens }
  const counted = await anthropic.messages.countTokens({ model: 'm', messages })
  heard['anthropic count'] = { usage: counted.input_tokens }
  try {
    await anthropic.messages.stream({ model: 'm', max_tokens: 4, messages }, { headers: { 'X-Sim-Fault': 'error' } }).finalMessage()
    heard['anthropic fails'] = { text: 'it did not' }
  } catch (e) {
    heard['anthropic fails'] = { finish: 'failed' }
  }
}
{
  const ollama = new Ollama({ host: base })
  let text = ''; let last
  for await (const part of await ollama.chat({ model: 'm', messages, stream: true, options: { num_predict: 4 } })) {
    text += part.message.content
    last = part
  }
  heard['ollama chat'] = { text, finish: last.done_reason, usage: last.eval_count }
  text = ''
  for await (const part of await ollama.generate({ model: 'm', prompt: 'a b c', stream: true, options: { num_predict: 4 } })) {
    text += part.response
    last = part
  }
  heard['ollama generate'] = { text, finish: last.done_reason, usage: last.eval_count }
}
console.log(JSON.stringify(heard))

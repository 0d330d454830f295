const model = 'bench-model'
const completionId = 'chatcmpl_bench00000000001'
const createdSeconds = 1_795_191_401
const usage = {
  prompt_tokens: 143,
  completion_tokens: 196,
  total_tokens: 339,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 0,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
}
const prose =
  'A router takes each request, picks the backend that should answer it, and passes the answer on as it comes. '

/** A chat completion of exactly `bytes` bytes of JSON, with usage. */
export function wholeAnswer(bytes: number): string {
  const write = (content: string): string =>
    JSON.stringify({
      id: completionId,
      object: 'chat.completion',
      created: createdSeconds,
      model,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content, refusal: null, annotations: [] },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage,
      service_tier: 'default',
      system_fingerprint: 'fp_bench',
    })
  const room = bytes - write('').length
  if (room < 0) throw new Error(`A chat completion does not fit in ${bytes} bytes.`)
  return write(prose.repeat(Math.ceil(room / prose.length)).slice(0, room))
}

/**
 * The `count` events of one streamed chat completion, each with its blank line: the role, the text, the finish reason,
 * the usage and `[DONE]`. Text events are about 230 bytes, as they are on the wire of real providers.
 */
export function streamEvents(count: number): string[] {
  const words = prose.split(' ')
  const text = Array.from({ length: count - 4 }, (_, index) =>
    choiceEvent({ content: `${words[index % words.length]} ` }, null),
  )
  return [
    choiceEvent({ role: 'assistant', content: '', refusal: null }, null),
    ...text,
    choiceEvent({}, 'stop'),
    sseEvent({ ...chunkBase(), choices: [], usage }),
    'data: [DONE]\n\n',
  ]
}

function choiceEvent(delta: object, finishReason: string | null): string {
  return sseEvent({
    ...chunkBase(),
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
    usage: null,
  })
}

function chunkBase(): object {
  return {
    id: completionId,
    object: 'chat.completion.chunk',
    created: createdSeconds,
    model,
    service_tier: 'default',
    system_fingerprint: 'fp_bench',
  }
}

function sseEvent(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

/** The kinds of requests: chat, streamed chat, and streamed Responses. */
export type RequestKind = 'chat' | 'chat-stream' | 'responses-stream'

/** The path and JSON body of one client request of about 700 bytes. */
export function clientRequest(kind: RequestKind): { path: string; body: string } {
  const instructions = prose.repeat(4).trim()
  const question = 'Say in a few sentences what a model router does, and when it asks a second backend.'
  if (kind === 'responses-stream') {
    const body = { model: 'svc-router/frontier', instructions, input: question, store: false, stream: true }
    return { path: '/v1/responses', body: JSON.stringify(body) }
  }
  const messages = [
    { role: 'system', content: instructions },
    { role: 'user', content: question },
  ]
  const body = { model: 'svc-router/frontier', messages, temperature: 0.2, max_completion_tokens: 400 }
  const streaming = kind === 'chat-stream' ? { stream: true, stream_options: { include_usage: true } } : {}
  return { path: '/v1/chat/completions', body: JSON.stringify({ ...body, ...streaming }) }
}

/** The headers of a well-known SDK, so that every gateway parses the same ones. */
export const clientHeaders: Readonly<Record<string, string>> = {
  accept: 'application/json',
  'content-type': 'application/json',
  'user-agent': 'OpenAI/JS 7.55.0',
  'x-stainless-retry-count': '0',
  'x-stainless-lang': 'js',
  'x-stainless-package-version': '7.55.0',
  'x-stainless-os': 'Linux',
  'x-stainless-arch': 'x64',
  'x-stainless-runtime': 'node',
  'accept-language': '*',
}

/** One whole HTTP/1.1 request, ready to be written to a socket. The body is ASCII. */
export function requestBytes(kind: RequestKind, headers: Readonly<Record<string, string>>): string {
  const { path, body } = clientRequest(kind)
  const all = { host: '127.0.0.1', ...clientHeaders, ...headers, 'content-length': String(Buffer.byteLength(body)) }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

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

/** The same answer as a message, in bytes of JSON that differ by what the format takes. */
export function wholeMessage(bytes: number): string {
  const { choices } = JSON.parse(wholeAnswer(bytes)) as { choices: [{ message: { content: string } }] }
  const [{ message }] = choices
  return JSON.stringify({
    id: 'msg_bench00000000001',
    type: 'message',
    role: 'assistant',
    model,
    content: [{ type: 'text', text: message.content }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: 143,
      cache_creation_input_tokens: 300,
      cache_read_input_tokens: 4_500,
      output_tokens: 196,
      service_tier: 'standard',
    },
  })
}

/** The text of `streamEvents` as the events of a streamed message, one more. */
export function messageEvents(count: number): string[] {
  const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
  const message = JSON.parse(wholeMessage(1024)) as { readonly usage: object }
  const words = prose.split(' ')
  const text = Array.from({ length: count - 4 }, (_, index) =>
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: `${words[index % words.length]} ` } }),
  )
  return [
    event('message_start', { message: { ...message, content: [], stop_reason: null } }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...text,
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: message.usage }),
    event('message_stop', {}),
  ]
}

/** The kinds of requests: chat, streamed chat, streamed Responses, and those of an agent. */
export type RequestKind = ShortKind | `${'chat' | 'chat-stream'} plain` | AgentKind
type ShortKind = 'chat' | 'chat-stream' | 'responses-stream'
export type AgentFormat = 'messages' | 'responses'
export type AgentSize = keyof typeof agentSizes
/** The profiles that requests can go to, by their names in kinds: see `without-sessions.ts` and `without-observers.ts`. */
const agentProfiles = { plain: 'svc-router/plain', unrecorded: 'svc-router/unrecorded' } as const
type AgentKind = `agent ${AgentFormat} ${AgentSize}${'' | ' streamed'}${'' | ` ${keyof typeof agentProfiles}`}`

interface ClientRequest {
  readonly path: string
  readonly body: string
}

/** Requests of a kind: one of about 700 bytes, or the turns of an agent. */
export function clientRequests(kind: RequestKind): readonly [ClientRequest, ...ClientRequest[]] {
  if (isAgentKind(kind)) return agentRequests(kind)
  if (kind === 'chat plain') return [clientRequest('chat', plainProfile)]
  return [kind === 'chat-stream plain' ? clientRequest('chat-stream', plainProfile) : clientRequest(kind)]
}

function isAgentKind(kind: RequestKind): kind is AgentKind {
  return kind.startsWith('agent ')
}

/**
 * How often the instructions repeat a text of 0.5 kB, how many tools of 0.6 kB there are, and how often a result repeats a
 * text of 0.1 kB: about what a small program, Codex (39 kB), and Claude Code (100 kB) send before the conversation.
 */
const agentSizes = {
  small: { instructions: 6, tools: 4, results: 3 },
  Codex: { instructions: 46, tools: 24, results: 28 },
  'Claude Code': { instructions: 100, tools: 80, results: 28 },
} as const
/** Requests of a session, from its first one on. Each has one call and one result more than the one before. */
const agentTurns = 20
/** The profile without what is measured, and the one that has sessions and marks but does not record sessions. */
export const { plain: plainProfile, unrecorded: unrecordedProfile } = agentProfiles
/** Stands for the number of the session in the requests of an agent. */
export const sessionNumber = '#########'
const agentText = prose.repeat(5)

/** The turns of an agent's session. */
function agentRequests(kind: AgentKind): [ClientRequest, ...ClientRequest[]] {
  const size = Object.keys(agentSizes).find((one): one is AgentSize => kind.includes(` ${one}`))!
  const names = Object.keys(agentProfiles) as readonly (keyof typeof agentProfiles)[]
  const name = names.find((one) => kind.endsWith(` ${one}`))
  const model = name === undefined ? 'svc-router/frontier' : agentProfiles[name]
  const write = kind.startsWith('agent messages') ? messagesTurn : responsesTurn
  const shape = { ...agentSizes[size], stream: kind.includes(' streamed') }
  const turn = (number: number): ClientRequest => write(model, number, shape)
  return [turn(0), ...Array.from({ length: agentTurns - 1 }, (_, at) => turn(at + 1))]
}

const schema = {
  type: 'object',
  properties: { path: { type: 'string', description: prose }, lines: { type: 'integer', description: prose } },
  required: ['path'],
}
interface AgentShape {
  readonly stream: boolean
  readonly instructions: number
  readonly results: number
  readonly tools: number
}

function messagesTurn(model: string, number: number, shape: AgentShape): ClientRequest {
  const { instructions, results, stream } = shape
  const toolNames = namesOf(shape)
  const messages: object[] = [{ role: 'user', content: 'Find the function that picks the backend.' }]
  for (let call = 0; call < number; call++) {
    const id = `toolu_${call}`
    const input = { path: `src/file-${call}.ts`, lines: call }
    messages.push(
      { role: 'assistant', content: [{ type: 'tool_use', id, name: toolNames[call % toolNames.length], input }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: id, content: `${call}: ${prose.repeat(results)}` }],
      },
    )
  }
  const tools = toolNames.map((name) => ({ name, description: prose, input_schema: schema }))
  const head = { model, max_tokens: 4_000, system: agentText.repeat(instructions), stream, tools }
  return { path: '/v1/messages', body: JSON.stringify({ ...head, messages }) }
}

function namesOf({ tools }: AgentShape): string[] {
  return Array.from({ length: tools }, (_, at) => `tool_${at}`)
}

function responsesTurn(model: string, number: number, shape: AgentShape): ClientRequest {
  const { instructions, results, stream } = shape
  const toolNames = namesOf(shape)
  const input: object[] = [{ role: 'user', content: 'Find the function that picks the backend.' }]
  for (let call = 0; call < number; call++) {
    const id = `call_${call}`
    const given = JSON.stringify({ path: `src/file-${call}.ts`, lines: call })
    input.push(
      { type: 'function_call', call_id: id, name: toolNames[call % toolNames.length], arguments: given },
      { type: 'function_call_output', call_id: id, output: `${call}: ${prose.repeat(results)}` },
    )
  }
  const tools = toolNames.map((name) => ({ type: 'function', name, description: prose, parameters: schema }))
  const head = { model, instructions: agentText.repeat(instructions), store: false, stream, tools }
  return { path: '/v1/responses', body: JSON.stringify({ ...head, input }) }
}

/** The path and JSON body of one client request of about 700 bytes. */
function clientRequest(kind: ShortKind, model = 'svc-router/frontier'): ClientRequest {
  const instructions = prose.repeat(4).trim()
  const question = 'Say in a few sentences what a model router does, and when it asks a second backend.'
  if (kind === 'responses-stream') {
    const body = { model, instructions, input: question, store: false, stream: true }
    return { path: '/v1/responses', body: JSON.stringify(body) }
  }
  const messages = [
    { role: 'system', content: instructions },
    { role: 'user', content: question },
  ]
  const body = { model, messages, temperature: 0.2, max_completion_tokens: 400 }
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

/** Whole HTTP/1.1 requests, ready to be written to a socket. The bodies are ASCII. */
export function requestBytes(kind: RequestKind, headers: Readonly<Record<string, string>>): string[] {
  return clientRequests(kind).map(({ path, body }) => {
    const length = String(Buffer.byteLength(body))
    const session = isAgentKind(kind) ? { 'x-session-id': `bench-${sessionNumber}` } : {}
    const all = { host: '127.0.0.1', ...clientHeaders, ...headers, ...session, 'content-length': length }
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
  })
}

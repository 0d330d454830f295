import type { Json, JsonObject } from '../../../src/domain/json.ts'
import type { ClientFormatId } from '../../../src/formats/format.ts'
import { codexSession, filled, textOf, type AgentTurn } from '../../../src/simulation/caches/recorded-session.ts'
import { recordedRequests, type RecordedRequest } from '../../formats/exchange.ts'

/** How a backend's encrypted reasoning looks to a client of a session, by turn. */
type Sealed = (turn: number) => string

/** A client whose requests were recorded, and the session that its first request begins. */
export interface ClientSession {
  readonly client: string
  readonly format: ClientFormatId
  /** The recording whose headers all requests have. */
  readonly file: string
  requests(turns: readonly AgentTurn[], sealed: Sealed): JsonObject[]
}

/** SDKs send what their caller gives them: their recorded requests get instructions of this length. */
const sdkInstructions = 24_000

/** A recorded request with texts of the recorded lengths. */
export function recorded(file: string): JsonObject {
  const { body } = recording(file)
  if (body === undefined) throw new Error(`the recording ${file} has no body`)
  return filled(body) as JsonObject
}

export function recording(file: string): RecordedRequest {
  const found = recordedRequests().find((one) => one.file === `${file}.json`)
  if (found === undefined) throw new Error(`there is no recording ${file}`)
  return found
}

/** A session of a client of chat completions. */
function chatSession(file: string, instructions: boolean): ClientSession['requests'] {
  return (turns) => {
    const base = recorded(file)
    const system = instructions ? [{ role: 'system', content: textOf(sdkInstructions, 5) }] : []
    const messages: JsonObject[] = [...system, ...(base['messages'] as readonly JsonObject[])]
    const name = ((base['tools'] as readonly JsonObject[])[0]!['function'] as JsonObject)['name'] as string
    return grow({ ...base, messages }, 'messages', turns, (turn) => {
      if (turn.type === 'answer') {
        return [
          { role: 'assistant', content: turn.text },
          { role: 'user', content: turn.next },
        ]
      }
      const calls = turn.calls.map(({ id }) => ({ id, type: 'function', function: { name, arguments: '{}' } }))
      const results = turn.calls.map(({ id, output }) => ({ role: 'tool', tool_call_id: id, content: output }))
      return [{ role: 'assistant', content: null, tool_calls: calls }, ...results]
    })
  }
}

/** A session of a client of Responses other than Codex. */
function responsesSession(file: string, instructions: boolean): ClientSession['requests'] {
  return (turns, sealed) => {
    const base = recorded(file)
    const given = base['input']
    const first = typeof given === 'string' ? [{ role: 'user', content: given }] : (given as readonly JsonObject[])
    const input = instructions ? [{ role: 'system', content: textOf(sdkInstructions, 5) }, ...first] : first
    const name = (base['tools'] as readonly JsonObject[])[0]!['name'] as string
    // A provider gives encrypted reasoning only to a client that asks for it.
    const stateless = { store: false, include: ['reasoning.encrypted_content'] }
    return grow({ ...base, input, ...stateless }, 'input', turns, (turn, at) => {
      const thought = { type: 'reasoning', summary: [], encrypted_content: sealed(at) }
      if (turn.type === 'answer') {
        const said = { role: 'assistant', content: [{ type: 'output_text', text: turn.text }] }
        return [thought, said, { role: 'user', content: [{ type: 'input_text', text: turn.next }] }]
      }
      return [
        thought,
        ...turn.calls.map(({ id }) => ({ type: 'function_call', call_id: id, name, arguments: '{}' })),
        ...turn.calls.map(({ id, output }) => ({ type: 'function_call_output', call_id: id, output })),
      ]
    })
  }
}

/** A session of Claude Code, which marks its instructions and the end of each request. */
const claudeCode: ClientSession['requests'] = (turns, sealed) => {
  const base = recorded('claude-code-messages')
  const mark = { cache_control: { type: 'ephemeral' } }
  const requests = grow(base, 'messages', turns, (turn, at) => {
    const thought = { type: 'thinking', thinking: '', signature: sealed(at) }
    if (turn.type === 'answer') {
      return [
        { role: 'assistant', content: [thought, { type: 'text', text: turn.text }] },
        { role: 'user', content: [{ type: 'text', text: turn.next }] },
      ]
    }
    const calls = turn.calls.map(({ id }) => ({ type: 'tool_use', id, name: 'Bash', input: {} }))
    const results = turn.calls.map(({ id, output }) => ({ type: 'tool_result', tool_use_id: id, content: output }))
    return [
      { role: 'assistant', content: [thought, ...calls] },
      { role: 'user', content: results },
    ]
  })
  return requests.map((request) => {
    const messages = (request['messages'] as readonly JsonObject[]).map((message) => ({
      ...message,
      content: (message['content'] as readonly JsonObject[]).map(({ cache_control: _old, ...block }) => block),
    }))
    const last: JsonObject[] = messages.at(-1)!.content
    last.push({ ...last.pop()!, ...mark })
    return { ...request, messages }
  })
}

function grow(
  base: JsonObject,
  member: string,
  turns: readonly AgentTurn[],
  write: (turn: AgentTurn, at: number) => readonly Json[],
): JsonObject[] {
  const list = [...(base[member] as readonly Json[])]
  const requests = [{ ...base, [member]: [...list] }]
  for (const [at, turn] of turns.entries()) {
    list.push(...write(turn, at))
    requests.push({ ...base, [member]: [...list] })
  }
  return requests
}

export const clientSessions: readonly ClientSession[] = [
  { client: 'Codex', format: 'openai-responses', file: 'codex-turn1', requests: codexSession },
  { client: 'Claude Code', format: 'anthropic-messages', file: 'claude-code-messages', requests: claudeCode },
  ofChat('opencode, chat', 'opencode-chat-main', false),
  ofResponses('opencode, Responses', 'opencode-responses-main', false),
  ofChat('AI SDK, chat', 'aisdk-chat-tool-turn2', true),
  ofResponses('AI SDK, Responses', 'aisdk-responses-tool-turn2', true),
  ofChat('OpenAI SDK, chat', 'openai-chat-tools', true),
  ofResponses('OpenAI SDK, Responses', 'openai-responses-tools', true),
]

function ofChat(client: string, file: string, instructions: boolean): ClientSession {
  return { client, file, format: 'openai-chat', requests: chatSession(file, instructions) }
}

function ofResponses(client: string, file: string, instructions: boolean): ClientSession {
  return { client, file, format: 'openai-responses', requests: responsesSession(file, instructions) }
}

import { readFileSync } from 'node:fs'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'

/** The first request of Codex 0.169, as it was recorded; texts are replaced by their length. */
const codexFile = './codex-request.json'
const redacted = /^\((\d{1,6}) characters of [a-z_]+\)$/
const words =
  'the file has a function that reads its input and returns a list of results for each test in this folder'.split(' ')
const toolText = 3_000
/** The model calls tools for this many turns, then answers, and the user goes on. */
const turnsPerTask = 5
/** One turn runs this many tools at once: more blocks than a mark looks back. */
const manyCalls = 12
const turnWithManyCalls = 7

/** A text of this length that is the same each time. */
export function textOf(length: number, seed: number): string {
  let text = `${seed}:`
  for (let at = seed; text.length < length; at = (at * 31 + 7) % 1_000_003)
    text += ` ${words[at % words.length]}${at % 97}`
  return text.slice(0, length)
}

/** A recorded body with texts in place of their lengths. */
export function filled(value: Json, seed = 1): Json {
  if (typeof value === 'string') {
    const length = redacted.exec(value)?.[1]
    return length === undefined ? value : textOf(Number(length), seed)
  }
  if (Array.isArray(value)) return (value as readonly Json[]).map((entry, at) => filled(entry, seed * 7 + at))
  if (!isObject(value)) return value
  const entries = Object.entries(value as Readonly<Record<string, Json>>)
  return Object.fromEntries(entries.map(([name, inner], at) => [name, filled(inner, seed * 11 + at)]))
}

/** What happens in one turn of an agent: it calls tools, or it answers and the user goes on. */
export type AgentTurn =
  | { readonly type: 'tools'; readonly calls: readonly { readonly id: string; readonly output: string }[] }
  | { readonly type: 'answer'; readonly text: string; readonly next: string }

/** The turns of one session after its first request. */
export function agentTurns(count: number): AgentTurn[] {
  return Array.from({ length: count }, (_, turn): AgentTurn => {
    if (turn % turnsPerTask === turnsPerTask - 1) {
      return { type: 'answer', text: textOf(800, turn + 1_000), next: textOf(200, turn + 2_000) }
    }
    const calls = turn === turnWithManyCalls ? manyCalls : 1 + (turn % 2)
    return {
      type: 'tools',
      calls: Array.from({ length: calls }, (_one, call) => ({
        id: `call_${turn}_${call}`,
        output: textOf(toolText / calls, turn * 100 + call),
      })),
    }
  })
}

/**
 * A session of Codex: its recorded first request, and one more request for each turn of the agent. Before the user goes
 * on, Codex adds a message of the developer. `sealed` is what the backend sent as encrypted reasoning of a turn.
 */
export function codexSession(turns: readonly AgentTurn[], sealed: (turn: number) => string | undefined): JsonObject[] {
  const base = filled(JSON.parse(readFileSync(new URL(codexFile, import.meta.url), 'utf8')) as Json) as JsonObject
  const input = [...(base['input'] as readonly JsonObject[])]
  const requests = [{ ...base, input: [...input] }]
  for (const [at, turn] of turns.entries()) {
    const encrypted = sealed(at)
    const thought = { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Next.' }] }
    input.push(encrypted === undefined ? thought : { ...thought, encrypted_content: encrypted })
    if (turn.type === 'answer') {
      const said = [{ type: 'output_text', text: turn.text, annotations: [] }]
      input.push(
        { type: 'message', role: 'assistant', content: said },
        { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'The sandbox allows writing.' }] },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: turn.next }] },
      )
    } else {
      for (const { id } of turn.calls) {
        const call = { type: 'function_call', call_id: id, name: 'exec_command', arguments: '{"cmd":"ls"}' }
        input.push(call)
      }
      for (const { id, output } of turn.calls) input.push({ type: 'function_call_output', call_id: id, output })
    }
    requests.push({ ...base, input: [...input] })
  }
  return requests
}

import * as fc from 'fast-check'
import { expect } from 'vitest'
import type { JsonObject } from '../../src/domain/json.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { seenIn } from '../seen-answer.ts'
import { Service } from '../service.ts'

/**
 * All conversations of three turns in which a model may call our tool and a client's tool, over real sockets with
 * simulated models: one answers, two others deliberate. `expectSound` checks the invariants.
 */
const frontier = 'svc-router/frontier'
const ours = 'svc_router_fusion'
export const moves = ['ours', 'client', 'both', 'none'] as const
/** `twice`: the model calls our tool two times in one message. */
type Move = (typeof moves)[number] | 'twice'
type Path = '/chat/completions' | '/responses'

interface Case {
  readonly path: Path
  readonly stream: boolean
  readonly mixed: 'defer' | 'drop'
  readonly maxRuns: number
  readonly moves: readonly Move[]
}

/** More requests than any conversation needs. */
const maxRequests = 12

/** The service with one backend that answers, two that deliberate, and a plan with practically no limits. */
export function startMixed(): Promise<Service> {
  const profiles = { [frontier]: { backends: ['alpha'] }, 'svc-router/fusion': { backends: ['beta', 'gamma'] } }
  const plans = { max: { name: 'Max', requests_per_minute: 1_000_000, requests_per_month: 10_000_000, premium: true } }
  return Service.start({ settings: { profiles, plans } })
}

let questions = 0

interface Step {
  readonly move: Move
  readonly questions: readonly string[]
  readonly step: ScriptStep
}

/** One message of the answering model. Each question is unique in the whole test, so that it can be identified. */
function stepFor(move: Move): Step {
  const count = move === 'twice' ? 2 : move === 'ours' || move === 'both' ? 1 : 0
  const asked = Array.from({ length: count }, () => `What of number ${++questions}?`)
  const made: JsonObject[] = asked.map((question) => ({ name: ours, arguments: { question } }))
  if (move === 'client' || move === 'both') made.push({ name: 'get_weather', arguments: { city: 'Oslo' } })
  const text = 'One moment.'
  const step: ScriptStep =
    made.length === 0 ? { do: 'answer', text } : { do: 'answer', text, calls: JSON.stringify(made) }
  return { move, questions: asked, step }
}

/** The expected questions of each run, in order, by an independent implementation that is as simple as possible. */
function expectedRuns(steps: readonly Step[], mixed: string, maxRuns: number): (readonly string[])[] {
  const expected: (readonly string[])[] = []
  let runs = 0
  let turn = 1
  let wasCalled = false
  let isWithdrawn = false
  let waiting: readonly string[] | undefined
  const begin = (): void => {
    runs = 0
    turn = 1
    wasCalled = isWithdrawn = false
    if (waiting === undefined) return
    expected.push(waiting)
    runs = 1
    waiting = undefined
  }
  for (const { move, questions: asked } of steps) {
    const isOffered = !isWithdrawn && turn < 4 && (runs < maxRuns || wasCalled)
    const isOurs = move === 'ours' || move === 'twice'
    if (move === 'none' || (isOurs && !isOffered)) return expected
    if (isOurs) {
      if (runs < maxRuns) expected.push(asked)
      else isWithdrawn = true
      runs = Math.min(maxRuns, runs + 1)
      wasCalled = true
      turn += 1
      continue
    }
    if (move === 'both' && mixed === 'defer' && isOffered) waiting = asked
    begin()
  }
  return expected
}

const clientTool = {
  '/chat/completions': { type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } },
  '/responses': { type: 'function', name: 'get_weather', parameters: { type: 'object' } },
}

/** Appends the model's message and the results of its tool calls to the history, as a client does. */
function appendTurn(path: Path, history: JsonObject[], text: string, ids: readonly string[]): void {
  if (path === '/chat/completions') {
    const made = ids.map((id) => ({ id, type: 'function', function: { name: 'get_weather', arguments: '{}' } }))
    history.push({ role: 'assistant', content: text, tool_calls: made })
    for (const id of ids) history.push({ role: 'tool', tool_call_id: id, content: `Result of ${id}` })
  } else {
    history.push({ role: 'assistant', content: text })
    for (const id of ids) history.push({ type: 'function_call', call_id: id, name: 'get_weather', arguments: '{}' })
    for (const id of ids) history.push({ type: 'function_call_output', call_id: id, output: `Result of ${id}` })
  }
}

interface SentMessage {
  readonly role: string
  readonly content?: string | null
  readonly tool_call_id?: string
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[]
}

/** Expects that each tool call in a request has exactly one result, after it. Returns the tool names by call ID. */
function expectAnswered(body: string): ReadonlyMap<string, string> {
  const { messages } = JSON.parse(body) as { messages: readonly SentMessage[] }
  const made = new Map<string, string>()
  const answered = new Set<string>()
  for (const { tool_calls: calls = [], role, tool_call_id: id } of messages) {
    for (const call of calls) {
      expect(made.has(call.id), 'no two calls have one id').toBe(false)
      made.set(call.id, call.function.name)
    }
    if (role !== 'tool') continue
    expect(made.has(id!) && !answered.has(id!), `${id} is answered once, after its call`).toBe(true)
    answered.add(id!)
  }
  expect(answered.size).toBe(made.size)
  return made
}

/** Runs a conversation until the model calls no tool, and checks the invariants in each turn. */
export async function expectSound(
  service: Service,
  { path, stream, mixed, maxRuns, moves: planned }: Case,
): Promise<void> {
  const [alpha, beta, gamma] = service.providers
  const steps = planned.map((move) => stepFor(move))
  const mark = `Go, ${++questions}.`
  alpha!.script([...steps.map(({ step }) => step), { do: 'answer', text: 'That is all.', repeat: true }])
  const bodiesOf = (provider: typeof alpha): string[] =>
    provider!.captured().flatMap(({ body }) => (body.includes(mark) ? [body] : []))
  const tools = [{ type: 'svc-router:fusion', parameters: { mixed, max_runs: maxRuns } }, clientTool[path]]
  const history: JsonObject[] = [{ role: 'user', content: mark }]
  const surfaced: string[] = []
  let runs = 0
  let isWaiting = false
  for (let request = 1; ; request++) {
    expect(request, 'the conversation ends').toBeLessThan(maxRequests)
    const input = path === '/responses' ? { input: history, store: false } : { messages: history }
    const response = await service.post(path, { model: frontier, stream, tools, ...input })
    const text = await response.text()
    expect(response.status, text).toBe(200)
    expect(text, 'the internal tool name is hidden').not.toContain(ours)
    const { calls, report, text: said } = seenIn(text)
    expect(calls.every(({ name }) => name === 'get_weather')).toBe(true)
    const here = report!['ran'] === true ? (report!['runs'] as number) : 0
    expect(here).toBeLessThanOrEqual(maxRuns)
    runs += here
    if (isWaiting) expect(report, 'a deferred question is asked first').toMatchObject({ ran: true, reason: 'deferred' })
    isWaiting = report!['reason'] === 'waiting_for_tools'
    expect(said, 'the answer has text').not.toBe('')
    if (calls.length === 0) break
    const ids = calls.map(({ id }) => id)
    expect(ids.some((id) => surfaced.includes(id))).toBe(false)
    surfaced.push(...ids)
    appendTurn(path, history, said, ids)
  }
  const sent = bodiesOf(alpha)
  for (const body of sent) {
    expect(body).not.toContain('svc-router:fusion')
    expectAnswered(body)
  }
  const last = expectAnswered(sent.at(-1)!)
  expect(surfaced.filter((id) => last.get(id) === 'get_weather')).toEqual(surfaced)
  const panels = [...bodiesOf(beta), ...bodiesOf(gamma)].join('\n')
  const actual = steps.flatMap((step) => step.questions.filter((question) => panels.includes(question)))
  const expected = expectedRuns(steps, mixed, maxRuns)
  expect(actual, planned.join()).toEqual(expected.flat())
  expect(runs).toBe(expected.length)
}

/** Random, longer conversations, in which the model may also call our tool twice in one message. */
export async function expectRandomSound(service: Service, numRuns: number, seed: number): Promise<void> {
  const move = fc.constantFrom<Move>(...moves.slice(0, 3), 'twice', ...moves)
  const given = fc.record({
    path: fc.constantFrom<Path>('/chat/completions', '/responses'),
    stream: fc.boolean(),
    mixed: fc.constantFrom('defer' as const, 'drop' as const),
    maxRuns: fc.constantFrom(1, 2),
    moves: fc.array(move, { minLength: 4, maxLength: 8 }),
  })
  await fc.assert(
    fc.asyncProperty(given, (one) => expectSound(service, one)),
    { numRuns, seed },
  )
}

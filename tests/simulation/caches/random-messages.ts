import type { Json, JsonObject } from '../../../src/domain/json.ts'
import type { Dice } from '../dice.ts'

const texts = [
  'Read the file.',
  '\n',
  '  ',
  'quote " and \\ slash',
  'ünïcödé 😀',
  '{"cache_control":{}}',
  'a'.repeat(300),
]

/** A random request in the Messages format that Anthropic accepts, with marks of the caller in some. */
export function randomMessages(dice: Dice): JsonObject {
  const marks = new CallerMarks(dice)
  const body: Record<string, Json> = { model: 'svc-router/frontier', max_tokens: 100 }
  const tools = Array.from({ length: dice.upTo(4) }, (_, at) => randomTool(dice, marks, at))
  if (tools.length > 0) body['tools'] = tools
  if (dice.chance(0.3)) body['system'] = 'You are an agent. '.repeat(1 + dice.upTo(300))
  else if (dice.chance(0.7)) body['system'] = Array.from({ length: 1 + dice.upTo(3) }, () => randomText(dice, marks))
  body['messages'] = randomTurns(dice, marks)
  if (marks.left > 0 && dice.chance(0.1) && !marks.isLate) body['cache_control'] = { type: 'ephemeral' }
  if (dice.chance(0.2)) body['metadata'] = { user_id: 'u' }
  return Object.fromEntries(dice.chance(0.5) ? Object.entries(body) : Object.entries(body).toReversed())
}

/** At most four marks, those for an hour first. */
class CallerMarks {
  readonly #dice: Dice
  readonly #share: number
  left: number
  isLate = false

  constructor(dice: Dice) {
    this.#dice = dice
    this.left = dice.upTo(4)
    this.#share = dice.pick([0, 0.1, 0.4])
  }

  /** The block, with a mark in some. */
  on(block: JsonObject): JsonObject {
    if (this.left === 0 || !this.#dice.chance(this.#share)) {
      return this.#dice.chance(0.02) ? { ...block, cache_control: null } : block
    }
    this.left -= 1
    const isHour = !this.isLate && this.#dice.chance(0.4)
    this.isLate ||= !isHour
    return { ...block, cache_control: isHour ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' } }
  }
}

function randomTool(dice: Dice, marks: CallerMarks, at: number): JsonObject {
  if (dice.chance(0.1)) return { type: 'web_search_20250305', name: 'web_search' }
  const tool = { name: `tool_${at}`, description: dice.pick(texts), input_schema: { type: 'object', properties: {} } }
  return dice.chance(0.2) ? { ...tool, defer_loading: true } : marks.on(tool)
}

function randomText(dice: Dice, marks: CallerMarks): JsonObject {
  const text = dice.pick(texts)
  const block = { type: 'text', text }
  return text.trim() === '' ? block : marks.on(block)
}

function randomTurns(dice: Dice, marks: CallerMarks): JsonObject[] {
  const messages: JsonObject[] = [{ role: 'user', content: randomContent(dice, marks) }]
  for (let turn = dice.upTo(6); turn > 0; turn -= 1) {
    const calls = Array.from({ length: dice.chance(0.1) ? 25 : dice.upTo(3) }, (_, at) => `toolu_${turn}_${at}`)
    const said: JsonObject[] = []
    if (dice.chance(0.4)) said.push({ type: 'thinking', thinking: 'Hm.', signature: 'svcr1.any.SIG' })
    if (calls.length === 0 || dice.chance(0.5)) said.push(randomText(dice, marks))
    for (const id of calls) said.push(marks.on({ type: 'tool_use', id, name: 'tool_0', input: { a: '}' } }))
    messages.push({ role: 'assistant', content: said })
    if (calls.length > 0) {
      messages.push({ role: 'user', content: calls.map((id) => randomResult(dice, marks, id)) })
    } else messages.push({ role: 'user', content: randomContent(dice, marks) })
    if (dice.chance(0.1)) messages.push({ role: 'system', content: [randomText(dice, marks)] })
  }
  if (dice.chance(0.1)) messages.push({ role: 'assistant', content: [{ type: 'text', text: 'Well' }] })
  return messages
}

function randomContent(dice: Dice, marks: CallerMarks): Json {
  if (dice.chance(0.3)) return dice.pick(texts)
  return Array.from({ length: 1 + dice.upTo(3) }, () => {
    if (dice.chance(0.8)) return randomText(dice, marks)
    const data = 'aGk='
    return marks.on({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } })
  })
}

function randomResult(dice: Dice, marks: CallerMarks, id: string): JsonObject {
  if (dice.chance(0.1)) return marks.on({ type: 'tool_result', tool_use_id: id })
  const inner = dice.chance(0.5) ? dice.pick(texts) : [randomText(dice, marks)]
  return marks.on({ type: 'tool_result', tool_use_id: id, content: inner })
}

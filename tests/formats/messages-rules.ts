import type { Json, JsonObject } from '../../src/domain/json.ts'

/** The rules of Anthropic's API that a body violates: documented ones, and those that the API answers with 400. */
export function breachesOf(body: JsonObject): string[] {
  const breaches: string[] = []
  const check = (isRight: boolean, rule: string): void => {
    if (!isRight) breaches.push(rule)
  }
  const { max_tokens: maxTokens, system, messages, tools, temperature, thinking } = body
  check(Number.isInteger(maxTokens) && Number(maxTokens) > 0, 'max_tokens is there and above 0')
  if (system !== undefined) {
    const blocks = listOf(system)
    check(blocks.length > 0 && blocks.every(isText), 'system has text and nothing else')
  }
  if (temperature !== undefined) check(Number(temperature) >= 0 && Number(temperature) <= 1, 'temperature is 0 to 1')
  if (thinking !== undefined) {
    const budget = (thinking as JsonObject)['budget_tokens']
    if (budget !== undefined) check(Number(budget) >= 1024 && Number(budget) < Number(maxTokens), 'the budget fits')
    check(temperature === undefined && body['top_p'] === undefined, 'no sampling with thinking')
  }
  if (tools !== undefined) checkTools(listOf(tools), check)
  checkMessages(listOf(messages), tools !== undefined, check)
  return breaches
}

type Check = (isRight: boolean, rule: string) => void

function checkTools(tools: readonly JsonObject[], check: Check): void {
  check(tools.length > 0, 'tools is not empty')
  const names = tools.map(({ name }) => asText(name))
  check(new Set(names).size === names.length, 'names of tools differ')
  for (const { name, input_schema: schema } of tools) {
    check(/^[a-zA-Z0-9_-]{1,128}$/.test(asText(name)), 'names of tools are plain')
    const { type, anyOf, oneOf, allOf } = schema as JsonObject
    check(type === 'object', 'the input of a tool is an object')
    check(
      [anyOf, oneOf, allOf].every((choice) => choice === undefined),
      'and no choice at its top',
    )
  }
}

function checkMessages(messages: readonly JsonObject[], hasTools: boolean, check: Check): void {
  check(messages[0]?.['role'] === 'user', 'the user begins')
  const ids = new Set<string>()
  for (const [position, { role, content }] of messages.entries()) {
    const next = messages[position + 1]
    if (role === 'system') {
      const isPlaced =
        messages[position - 1]?.['role'] === 'user' && (next === undefined || next['role'] === 'assistant')
      check(isPlaced, 'instructions stand between the user and the answer')
    } else check(role === 'user' || role === 'assistant', 'roles are user and assistant')
    check(next === undefined || next['role'] !== role, 'both speak by turns')
    const blocks = listOf(content)
    check(blocks.length > 0, 'no message is empty')
    for (const block of blocks) checkBlock(block, check)
    const calls = blocks.filter(({ type }) => type === 'tool_use')
    check(calls.length === 0 || hasTools, 'who has called tools declares some')
    for (const { id } of calls) {
      check(!ids.has(asText(id)), 'ids of calls differ')
      ids.add(asText(id))
    }
    if (calls.length > 0) {
      const heads = listOf(next?.['content'] ?? []).slice(0, calls.length)
      const answered = heads.map(({ tool_use_id: id }) => id)
      check(
        JSON.stringify(answered) === JSON.stringify(calls.map(({ id }) => id)),
        'results follow their calls, before anything else',
      )
    }
  }
}

function checkBlock(block: JsonObject, check: Check): void {
  const { type, id, input, content } = block
  if (type === 'text') check(isText(block), 'texts have more than space')
  if (type === 'tool_use') {
    check(/^[a-zA-Z0-9_-]+$/.test(asText(id)), 'ids of calls are plain')
    check(typeof input === 'object' && input !== null && !Array.isArray(input), 'the input of a call is an object')
  }
  if (type === 'tool_result' && Array.isArray(content)) for (const inner of listOf(content)) checkBlock(inner, check)
}

function asText(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function isText({ type, text }: JsonObject): boolean {
  return type === 'text' && typeof text === 'string' && text.trim() !== ''
}

function listOf(value: Json | undefined): readonly JsonObject[] {
  return value as unknown as readonly JsonObject[]
}

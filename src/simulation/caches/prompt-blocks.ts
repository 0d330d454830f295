import { type Json, type JsonObject, isObject } from '../../domain/json.ts'

/** One block of a prompt, as a simulated cache reads it. */
export interface PromptBlock {
  readonly section: 'tools' | 'system' | 'messages'
  readonly role: string
  /** What the model reads, as JSON without marks. */
  readonly text: string
  readonly bytes: number
  /** The mark as sent; undefined if there is none. */
  readonly mark: Json | undefined
  /** Whether the provider accepts a mark here. */
  readonly takesMark: boolean
  readonly isThought: boolean
  /** Whether a message ends with the block. */
  readonly endsMessage: boolean
  /** Whether it belongs to a message in which the user says something, instead of only returning results of tools. */
  readonly isSaid: boolean
}

type BlockContext = Pick<PromptBlock, 'section' | 'role' | 'endsMessage' | 'isSaid'>

const markNames = ['cache_control', 'prompt_cache_breakpoint'] as const
const anthropicMarkable = new Set<Json | undefined>(['text', 'image', 'document', 'tool_use', 'tool_result'])
const thoughtTypes = new Set<Json | undefined>(['thinking', 'redacted_thinking', 'reasoning'])
const openAiMarkable = new Set<Json | undefined>([
  'text',
  'input_text',
  'image_url',
  'input_image',
  'file',
  'input_file',
])

/** The blocks of a request in the Messages format, in the order in which Anthropic caches them. */
export function messagesBlocks({ tools, system, messages }: JsonObject): PromptBlock[] {
  const blocks: PromptBlock[] = []
  for (const tool of listOf(tools)) {
    const takesMark = isObject(tool) && tool['defer_loading'] !== true
    blocks.push(blockOf(tool, { section: 'tools', role: '', endsMessage: true, isSaid: false }, takesMark))
  }
  for (const part of partsOf(system)) {
    blocks.push(
      blockOf(part, { section: 'system', role: 'system', endsMessage: true, isSaid: false }, isMarkable(part)),
    )
  }
  for (const message of listOf(messages)) {
    if (!isObject(message)) continue
    const role = nameOf(message['role'])
    const parts = partsOf(message['content'])
    const isSaid = role === 'user' && !parts.some((part) => isObject(part) && part['type'] === 'tool_result')
    for (const [index, part] of parts.entries()) {
      const context = { section: 'messages', role, endsMessage: index === parts.length - 1, isSaid } as const
      blocks.push(blockOf(part, context, isMarkable(part)))
    }
  }
  return blocks
}

/** The blocks of a request in one of OpenAI's formats: tools, then instructions and messages or items in their order. */
export function openAiBlocks({ tools, instructions, messages, input }: JsonObject): PromptBlock[] {
  const blocks: PromptBlock[] = []
  for (const tool of listOf(tools)) {
    blocks.push(blockOf(tool, { section: 'tools', role: '', endsMessage: true, isSaid: false }, false))
  }
  const textType = input === undefined ? 'text' : 'input_text'
  for (const part of partsOf(instructions)) {
    blocks.push(blockOf(part, { section: 'system', role: 'system', endsMessage: true, isSaid: false }, false))
  }
  const entries: readonly Json[] =
    typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(messages ?? input)
  for (const entry of entries) {
    if (!isObject(entry)) continue
    const role = nameOf(entry['role'] ?? entry['type'])
    const { content, ...rest } = entry
    const hasParts = typeof content === 'string' || Array.isArray(content)
    const parts: Json[] = hasParts ? partsOf(content, textType) : [entry]
    // What a message has besides its content: calls, and the id that a result belongs to.
    if (hasParts && Object.keys(rest).some((name) => name !== 'role' && name !== 'type')) parts.unshift(rest)
    for (const [index, part] of parts.entries()) {
      const endsMessage = index === parts.length - 1
      const takesMark = role !== 'assistant' && isObject(part) && openAiMarkable.has(part['type'])
      blocks.push(blockOf(part, { section: 'messages', role, endsMessage, isSaid: role === 'user' }, takesMark))
    }
  }
  return blocks
}

/** The blocks of a request to Gemini. */
export function geminiBlocks({ systemInstruction, tools, contents }: JsonObject): PromptBlock[] {
  const whole = { role: 'system', endsMessage: true, isSaid: false }
  const blocks = [
    ...(systemInstruction === undefined ? [] : [blockOf(systemInstruction, { section: 'system', ...whole }, false)]),
    ...listOf(tools).map((tool) => blockOf(tool, { section: 'tools', ...whole }, false)),
  ]
  for (const content of listOf(contents)) {
    if (!isObject(content)) continue
    const parts = listOf(content['parts'])
    for (const [index, part] of parts.entries()) {
      const endsMessage = index === parts.length - 1
      const role = nameOf(content['role'])
      blocks.push(blockOf(part, { section: 'messages', role, endsMessage, isSaid: false }, false))
    }
  }
  return blocks
}

/** Without the thoughts before the last thing that the user said. */
export function withoutOldThoughts(blocks: readonly PromptBlock[]): PromptBlock[] {
  const last = blocks.findLastIndex(({ isSaid }) => isSaid)
  return blocks.filter(({ isThought }, at) => !isThought || at > last)
}

/** The lifetime that a mark asks for. */
export function isHourMark(mark: Json | undefined): boolean {
  return isObject(mark) && mark['ttl'] === '1h'
}

function blockOf(part: Json, context: BlockContext, takesMark: boolean): PromptBlock {
  const type = isObject(part) ? part['type'] : undefined
  const mark = isObject(part)
    ? markNames.map((name) => part[name]).find((one) => one !== undefined && one !== null)
    : undefined
  const whole = JSON.stringify(part)
  const hasMarks = markNames.some((name) => whole.includes(name))
  const text = hasMarks ? JSON.stringify(part, (name, value: Json) => (isMarkName(name) ? undefined : value)) : whole
  const isThought = thoughtTypes.has(type)
  return { ...context, text, bytes: Buffer.byteLength(text), mark, takesMark, isThought }
}

function isMarkName(name: string): boolean {
  return markNames.some((one) => one === name)
}

function isMarkable(part: Json): boolean {
  if (!isObject(part) || !anthropicMarkable.has(part['type'])) return false
  return part['type'] !== 'text' || (typeof part['text'] === 'string' && part['text'].trim() !== '')
}

/** A text is one block of text. */
function partsOf(content: Json | undefined, textType = 'text'): Json[] {
  return typeof content === 'string' ? [{ type: textType, text: content }] : [...listOf(content)]
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : []
}

/** A name in a body; empty if it is none. */
export function nameOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

import { type Json, type JsonObject, isObject, objectOf } from '../../domain/json.ts'

/** The parts of a request that the simulated model uses, in any format. Lenient: unknown parts are skipped. */
export interface Prompt {
  readonly model: string
  readonly stream: boolean
  readonly lastUserText: string
  readonly images: number
  readonly files: number
  readonly tools: readonly PromptTool[]
  readonly toolChoice: 'auto' | 'none' | 'required' | { readonly name: string }
  readonly parallel: boolean
  /** Tool results after the last user message. */
  readonly toolResults: readonly string[]
  readonly output: 'text' | 'json' | { readonly schema: JsonObject }
  readonly maxTokens: number | undefined
  readonly reasons: boolean
  /** Messages only: whether the request hides reasoning. */
  readonly hidesReasoning: boolean
  readonly inputTokens: number
  /** Chat only. */
  readonly includeUsage: boolean
  readonly choices: number
  readonly logprobs: boolean
}

export interface PromptTool {
  readonly kind: 'function' | 'custom'
  readonly name: string
  readonly namespace: string | undefined
  readonly parameters: JsonObject
}

const maxChoices = 8
const charactersPerToken = 4

/** About four characters per token, as for English. */
export function countTokens(text: string): number {
  return Math.ceil(text.length / charactersPerToken)
}

/** Truncates a text to a number of tokens. */
export function cutToTokens(text: string, tokens: number): string {
  return text.slice(0, Math.max(0, tokens) * charactersPerToken)
}

/** A body of `/chat/completions`. */
export function readChatPrompt(body: JsonObject): Prompt {
  const seen = readTurns(listOf(body.messages))
  const format = objectOf(body.response_format)
  return {
    ...shared(body, seen),
    tools: listOf(body.tools).flatMap((tool) =>
      readTool({ ...tool, ...objectOf(tool.function), ...objectOf(tool.custom) }),
    ),
    toolChoice: readToolChoice(body.tool_choice),
    output: readOutput(format.type, objectOf(format.json_schema).schema),
    maxTokens: positive(body.max_completion_tokens) ?? positive(body.max_tokens),
    reasons: reasons(body.reasoning_effort),
    hidesReasoning: false,
    includeUsage: objectOf(body.stream_options).include_usage === true,
    choices: Math.min(positive(body.n) ?? 1, maxChoices),
    logprobs: body.logprobs === true,
  }
}

/** A body of `/responses`. */
export function readResponsesPrompt(body: JsonObject): Prompt {
  const items = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : listOf(body.input)
  const format = objectOf(objectOf(body.text).format)
  return {
    ...shared(body, readTurns(items)),
    tools: listOf(body.tools).flatMap((tool) =>
      tool.type === 'namespace'
        ? listOf(tool.tools).flatMap((inner) => readTool(inner, textOf(tool.name)))
        : readTool(tool),
    ),
    toolChoice: readToolChoice(body.tool_choice),
    output: readOutput(format.type, format.schema),
    maxTokens: positive(body.max_output_tokens),
    reasons: reasons(objectOf(body.reasoning).effort),
    hidesReasoning: false,
    includeUsage: true,
    choices: 1,
    logprobs: false,
  }
}

/** A body of `/messages`. */
export function readMessagesPrompt(body: JsonObject): Prompt {
  const { format } = objectOf(body.output_config)
  const thinking = objectOf(body.thinking)
  const choice = objectOf(body.tool_choice)
  return {
    ...shared(body, readMessageTurns(listOf(body.messages))),
    parallel: choice.disable_parallel_tool_use !== true,
    tools: listOf(body.tools).flatMap((tool) =>
      readTool({ ...tool, type: isObject(tool.input_schema) ? 'function' : tool.type, parameters: tool.input_schema }),
    ),
    toolChoice:
      choice.type === 'any'
        ? 'required'
        : choice.type === 'none'
          ? 'none'
          : typeof choice.name === 'string'
            ? { name: choice.name }
            : 'auto',
    output: readOutput(objectOf(format).type, objectOf(format).schema),
    maxTokens: positive(body.max_tokens),
    reasons: thinking.type === 'enabled' || thinking.type === 'adaptive',
    hidesReasoning: thinking.display === 'omitted',
    includeUsage: true,
    choices: 1,
    logprobs: false,
  }
}

interface Turns {
  readonly lastUserText: string
  readonly images: number
  readonly files: number
  readonly toolResults: readonly string[]
}

function shared(body: JsonObject, turns: Turns): Turns & Pick<Prompt, 'model' | 'stream' | 'parallel' | 'inputTokens'> {
  return {
    ...turns,
    model: textOf(body.model),
    stream: body.stream === true,
    parallel: body.parallel_tool_calls !== false,
    inputTokens: countTokens(JSON.stringify(body.messages ?? body.input ?? '')),
  }
}

function readTurns(turns: readonly JsonObject[]): Turns {
  let lastUserText = ''
  let images = 0
  let files = 0
  let toolResults: string[] = []
  for (const turn of turns) {
    const type = textOf(turn.type)
    if (turn.role === 'tool' || type.endsWith('_call_output')) {
      toolResults.push(readText(turn.role === 'tool' ? turn.content : turn.output))
    } else if (turn.role === 'user') {
      lastUserText = readText(turn.content)
      toolResults = []
      const parts = typeof turn.content === 'string' ? [] : listOf(turn.content)
      images = parts.filter((part) => part.type === 'image_url' || part.type === 'input_image').length
      files = parts.filter(
        (part) => part.type === 'file' || part.type === 'input_file' || part.type === 'input_audio',
      ).length
    }
  }
  return { lastUserText, images, files, toolResults }
}

function readMessageTurns(messages: readonly JsonObject[]): Turns {
  let turns: Turns = { lastUserText: '', images: 0, files: 0, toolResults: [] }
  for (const { role, content } of messages) {
    if (role !== 'user') continue
    const blocks = typeof content === 'string' ? [] : listOf(content)
    const results = blocks.filter(({ type }) => type === 'tool_result')
    if (results.length > 0) {
      const toolResults = [...turns.toolResults, ...results.map((result) => readText(result.content))]
      turns = { ...turns, toolResults }
    } else {
      const countOf = (type: string): number => blocks.filter((block) => block.type === type).length
      turns = { lastUserText: readText(content), images: countOf('image'), files: countOf('document'), toolResults: [] }
    }
  }
  return turns
}

function readText(content: Json | undefined): string {
  if (typeof content === 'string') return content
  return listOf(content)
    .map((part) => textOf(part.text))
    .filter((text) => text !== '')
    .join(' ')
}

function readTool(tool: JsonObject, namespace?: string): PromptTool[] {
  if ((tool.type !== 'function' && tool.type !== 'custom') || typeof tool.name !== 'string') return []
  return [{ kind: tool.type, name: tool.name, namespace, parameters: objectOf(tool.parameters) }]
}

function readToolChoice(choice: Json | undefined): Prompt['toolChoice'] {
  if (choice === 'none' || choice === 'required') return choice
  const named = objectOf(choice)
  const name = named.name ?? objectOf(named.function).name ?? objectOf(named.custom).name
  if (typeof name === 'string') return { name }
  const mode = named.mode ?? objectOf(named.allowed_tools).mode
  return mode === 'required' ? 'required' : 'auto'
}

function readOutput(type: Json | undefined, schema: Json | undefined): Prompt['output'] {
  if (type === 'json_schema' && isObject(schema)) return { schema }
  return type === 'json_object' ? 'json' : 'text'
}

function reasons(effort: Json | undefined): boolean {
  return typeof effort === 'string' && effort !== 'none'
}

function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function positive(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 1 ? Math.floor(value) : undefined
}

/** Whether a `/responses` body contains a tool output without its call before it, which the vendor rejects. */
export function hasOrphanedOutput({ input, previous_response_id: previous }: JsonObject): boolean {
  // Its call is in the stored response.
  if (typeof previous === 'string') return false
  const called = new Set<unknown>()
  for (const { type, call_id: id } of listOf(input)) {
    if (type === 'item_reference') return false
    if (type === 'function_call' || type === 'custom_tool_call') called.add(id)
    else if ((type === 'function_call_output' || type === 'custom_tool_call_output') && !called.has(id)) return true
  }
  return false
}

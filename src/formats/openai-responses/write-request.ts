import type { Conversation, OutputFormat, Tool, ToolChoice } from '../../domain/conversation.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { allowedNote, modeOf } from '../allowed-tools.ts'
import { assertTranslatable, unsupported } from '../assert-translatable.ts'
import { customAsFunction } from '../custom-tools.ts'
import { type Draft, writeFields } from '../fields.ts'
import type { Dialect, WriteTarget } from '../format.ts'
import { markBody } from '../openai/cache-marks.ts'
import { ToolNames } from '../tool-names.ts'
import { hintNames, includeLogprobs, includeSealed, penaltyNames, samplingNames } from './fields.ts'
import { writeInput } from './write-input.ts'

/** The request body for a provider of Responses. @throws ServiceError if Responses cannot express the request */
export function writeRequest(conversation: Conversation, target: WriteTarget): JsonObject {
  assertTranslatable(conversation)
  const { sampling, hints, outputFormat, reasoning } = conversation
  if ((sampling.choices ?? 1) > 1) {
    throw unsupported('n', 'The backends of this profile return one answer per request. Set n to 1, or leave it out.')
  }
  if ((sampling.stop ?? []).length > 0) {
    throw unsupported(
      'stop',
      'The backends of this profile do not support stop sequences. Send the request without them.',
    )
  }
  const names = namesFor(conversation.tools, target.dialect)
  const input = writeInput(conversation, target, names)
  const body: Draft<JsonObject> = {
    model: target.model,
    input,
    stream: target.stream,
    // Providers must not store our callers' data (contract 11.6).
    store: false,
  }
  writeTools(body, conversation, target.dialect, names)
  finishInput(input, body, conversation, { target, names })
  const format = outputFormat === undefined ? undefined : writeOutputFormat(outputFormat)
  if (format !== undefined || hints.verbosity !== undefined) {
    body['text'] = {
      ...(format !== undefined && { format }),
      ...(hints.verbosity !== undefined && { verbosity: hints.verbosity }),
    }
  }
  if (reasoning !== undefined) body['reasoning'] = reasoning
  const include: string[] = []
  if (sampling.logprobs === true) include.push(includeLogprobs)
  if (hints.sealedReasoning === true) include.push(includeSealed)
  if (include.length > 0) body['include'] = include
  writeFields(body, samplingNames, sampling)
  for (const [wire, ours] of penaltyNames) if (sampling[ours]) body[wire] = sampling[ours]
  writeFields(body, hintNames, hints)
  if (target.cache?.key !== undefined) body['prompt_cache_key'] = target.cache.key
  if (hints.metadata !== undefined) body['metadata'] = hints.metadata
  for (const field of target.dialect.refusedFields) delete body[field]
  return body
}

interface InputEnd {
  readonly target: WriteTarget
  readonly names: ToolNames | undefined
}

/** Marks the input, and adds to its end what the model must know for this answer alone. */
function finishInput(input: JsonObject[], body: JsonObject, asked: Conversation, { target, names }: InputEnd): void {
  markBody('input', body, target)
  const note = names === undefined ? undefined : allowedNote(asked, names)
  if (note !== undefined) input.push({ type: 'message', role: 'user', content: note })
}

/** Tool names for an endpoint that supports only functions; undefined if tools keep their own names. */
function namesFor(tools: readonly Tool[], { hostedTools }: Dialect): ToolNames | undefined {
  return hostedTools === undefined ? undefined : new ToolNames(tools)
}

function writeTools(
  body: Draft<JsonObject>,
  conversation: Conversation,
  dialect: Dialect,
  names: ToolNames | undefined,
): void {
  const { toolChoice, parallelToolCalls } = conversation
  const tools = names === undefined ? writeAllTools(conversation) : writeFunctions(conversation, dialect, names)
  if (tools.length === 0) return
  body['tools'] = tools
  if (toolChoice !== undefined) {
    body['tool_choice'] =
      names === undefined ? writeToolChoice(toolChoice, conversation.tools) : chooseFunction(toolChoice, names)
  }
  if (parallelToolCalls !== undefined) body['parallel_tool_calls'] = parallelToolCalls
}

/** Every tool as a function, and the hosted tools that the endpoint runs. */
function writeFunctions({ tools }: Conversation, { hostedTools }: Dialect, names: ToolNames): Json[] {
  const written: Json[] = []
  for (const tool of tools) {
    if (tool.type === 'hosted') {
      const { type } = tool.declaration
      if (typeof type === 'string' && hostedTools?.includes(type) === true) written.push(tool.declaration)
      continue
    }
    const name = names.flatten(tool.name, tool.namespace)
    if (tool.type === 'function') written.push({ ...writeTool(tool), name })
    else written.push({ type: 'function', name, ...customAsFunction(tool), strict: false })
  }
  return written
}

function chooseFunction(choice: ToolChoice, names: ToolNames): Json {
  // Which tools are allowed stands after the input.
  if (choice.type === 'allowed') return modeOf(choice)
  if (choice.type !== 'tool') return choice.type
  return { type: 'function', name: names.choose(choice.name, choice.namespace) }
}

function writeAllTools(conversation: Conversation): Json[] {
  const tools: Json[] = []
  let open: { readonly namespace: string; readonly children: Json[] } | undefined
  for (const tool of conversation.tools) {
    if (tool.type === 'hosted') continue
    if (tool.namespace === undefined) {
      open = undefined
      tools.push(writeTool(tool))
      continue
    }
    if (open?.namespace !== tool.namespace) {
      open = { namespace: tool.namespace, children: [] }
      // Azure answers 400 to a namespace without a description.
      const description = `The tools of ${tool.namespace}.`
      tools.push({ type: 'namespace', name: tool.namespace, description, tools: open.children })
    }
    open.children.push(writeTool(tool))
  }
  return tools
}

function writeTool(tool: Exclude<Tool, { readonly type: 'hosted' }>): JsonObject {
  const declared: Draft<JsonObject> = { type: tool.type, name: tool.name }
  if (tool.description !== undefined) declared['description'] = tool.description
  if (tool.type === 'custom') {
    if (tool.format !== undefined) declared['format'] = tool.format
    return declared
  }
  declared['parameters'] = tool.parameters ?? { type: 'object', properties: {} }
  // Responses defaults to strict, chat does not.
  declared['strict'] = tool.strict ?? false
  return declared
}

/** `tool_choice`, for requests and as repeated in answers. */
export function writeToolChoice(choice: ToolChoice, tools: readonly Tool[]): Json {
  if (choice.type === 'tool') {
    const { kind, name, namespace } = choice
    return namespace === undefined ? { type: kind, name } : { type: kind, name, namespace }
  }
  if (choice.type !== 'allowed') return choice.type
  const custom = new Set(tools.flatMap((tool) => (tool.type === 'custom' ? [tool.name] : [])))
  const allowed = choice.names.map((name) => ({ type: custom.has(name) ? 'custom' : 'function', name }))
  return { type: 'allowed_tools', mode: choice.mode, tools: allowed }
}

/** `text.format`, for requests and as repeated in answers. */
export function writeOutputFormat(format: OutputFormat): JsonObject {
  return { ...format }
}

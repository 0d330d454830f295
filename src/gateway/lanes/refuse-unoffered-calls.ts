import type { AnswerEvent, Usage } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'
import { fusionFunctionName } from '../../domain/profiles.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import type { AnswerReader } from '../../formats/format.ts'
import { ToolNames } from '../../formats/tool-names.ts'
import type { LaneOptions } from './lane.ts'

/** How every format names the called function. Inside a JSON string the quotes would be preceded by backslashes. */
const called = new RegExp(`"name"\\s*:\\s*"${fusionFunctionName}"`)

/**
 * Guards answers from a model that was not offered our function `svc_router_fusion`. If the model calls it anyway,
 * its answer is useless to the caller, so the attempt fails, and another model is tried if nothing was sent yet
 * (contract 16.8). A caller's own function of that name is passed through.
 */
export function rejectingUnofferedCalls(choice: LaneOptions): LaneOptions {
  const { backendFormat, context } = choice
  if (context.conversation.tools.some((tool) => tool.type !== 'hosted' && tool.name === fusionFunctionName))
    return choice
  const refusing = { ...backendFormat, readAnswer: () => new CallRejectingReader(backendFormat.readAnswer()) }
  return { ...choice, backendFormat: refusing }
}

/**
 * Guards answers to a request that allows only some of its tools. The backend is told of all of them, because another
 * list would lose its cache (contract 44.6); if the model calls one that is not allowed, the attempt fails.
 */
export function rejectingDisallowedCalls(choice: LaneOptions): LaneOptions {
  const { backendFormat, context } = choice
  const { toolChoice, tools } = context.conversation
  if (toolChoice?.type !== 'allowed') return choice
  const names = new ToolNames(tools)
  const allowed = new Set(toolChoice.names)
  const isAllowed = (event: AnswerEvent): boolean => event.type !== 'call' || allowed.has(names.identify(event).name)
  const readAnswer = (): AnswerReader => new CheckingReader(backendFormat.readAnswer(), isAllowed)
  return { ...choice, backendFormat: { ...backendFormat, readAnswer } }
}

/** Reads as another reader does; those below check what it reads. */
class WrappedReader implements AnswerReader {
  readonly #reader: AnswerReader

  constructor(reader: AnswerReader) {
    this.#reader = reader
  }

  get lastData(): JsonObject | undefined {
    return this.#reader.lastData
  }

  get serviceTier(): string | undefined {
    return this.#reader.serviceTier
  }

  get finished(): boolean {
    return this.#reader.finished
  }

  readEvent(data: string, name?: string): readonly AnswerEvent[] {
    return this.#reader.readEvent(data, name)
  }

  readEnd(): readonly AnswerEvent[] {
    return this.#reader.readEnd?.() ?? []
  }

  readWhole(body: JsonObject): readonly AnswerEvent[] {
    return this.#reader.readWhole(body)
  }

  usageIn(data: JsonObject): Usage | undefined {
    return this.#reader.usageIn(data)
  }
}

class CheckingReader extends WrappedReader {
  readonly #isAllowed: (event: AnswerEvent) => boolean
  #hasFailed = false

  constructor(reader: AnswerReader, isAllowed: (event: AnswerEvent) => boolean) {
    super(reader)
    this.#isAllowed = isAllowed
  }

  // Some backends send a call and the end of the answer in one event: it has still failed.
  override get finished(): boolean {
    return !this.#hasFailed && super.finished
  }

  override readEvent(data: string, name?: string): readonly AnswerEvent[] {
    return this.#check(super.readEvent(data, name))
  }

  override readEnd(): readonly AnswerEvent[] {
    return this.#check(super.readEnd())
  }

  override readWhole(body: JsonObject): readonly AnswerEvent[] {
    return this.#check(super.readWhole(body))
  }

  #check(events: readonly AnswerEvent[]): readonly AnswerEvent[] {
    if (events.every(this.#isAllowed)) return events
    this.#hasFailed = true
    // The caller's choice, not an error of the backend.
    throw new UpstreamError('broken', { blames: 'request' })
  }
}

class CallRejectingReader extends WrappedReader {
  override readEvent(data: string, name?: string): readonly AnswerEvent[] {
    if (called.test(data)) throw new UpstreamError('broken')
    return super.readEvent(data, name)
  }

  override readWhole(body: JsonObject): readonly AnswerEvent[] {
    if (called.test(JSON.stringify(body))) throw new UpstreamError('broken')
    return super.readWhole(body)
  }
}

import type { AnswerEvent, JsonObject } from '../domain/conversation.ts'
import { fusionFunctionName } from '../domain/profiles.ts'
import { UpstreamError } from '../domain/upstream.ts'
import type { AnswerReader } from '../formats/format.ts'
import type { LaneChoice } from './lane.ts'

/** How every format names a function that is called. Inside a text its quotes have backslashes before them. */
const called = new RegExp(`"name"\\s*:\\s*"${fusionFunctionName}"`)

/**
 * The way of an answer from a model that was not offered our function `svc_router_fusion`. A model that calls it by
 * itself has not answered: its caller could make nothing of that call. So the attempt has failed, and another model is
 * asked where nothing was said yet (contract 16.8). A caller's own function of that name is the caller's.
 */
export function refusingOurCalls(choice: LaneChoice): LaneChoice {
  const { backendFormat, context } = choice
  if (context.conversation.tools.some((tool) => tool.type !== 'hosted' && tool.name === fusionFunctionName))
    return choice
  const refusing = { ...backendFormat, readAnswer: () => new RefusingReader(backendFormat.readAnswer()) }
  return { ...choice, backendFormat: refusing }
}

class RefusingReader implements AnswerReader {
  readonly #reader: AnswerReader

  constructor(reader: AnswerReader) {
    this.#reader = reader
  }

  get lastData(): JsonObject | undefined {
    return this.#reader.lastData
  }

  get finished(): boolean {
    return this.#reader.finished
  }

  readEvent(data: string, name?: string): readonly AnswerEvent[] {
    if (called.test(data)) throw new UpstreamError('broken')
    return this.#reader.readEvent(data, name)
  }

  readEnd(): readonly AnswerEvent[] {
    return this.#reader.readEnd?.() ?? []
  }

  readWhole(body: JsonObject): readonly AnswerEvent[] {
    if (called.test(JSON.stringify(body))) throw new UpstreamError('broken')
    return this.#reader.readWhole(body)
  }
}

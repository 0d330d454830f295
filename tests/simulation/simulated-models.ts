import type { AnswerEvent, Usage } from '../../src/domain/conversation.ts'
import { UpstreamError, type AttemptOutcome, type ViolatedRule } from '../../src/domain/upstream.ts'
import type { FusionMember, FusionPort, ModelAnswer, SubCall } from '../../src/gateway/fusion/engine/ports.ts'
import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import type { SimulatedTime } from './simulated-time.ts'

/** One step of a simulated answer: after this time, these events or this failure. */
export interface Step {
  readonly afterMs: number
  readonly events?: readonly AnswerEvent[]
  readonly fails?: Exclude<AttemptOutcome, 'answered'>
  /** The provider's rule with which it fails. */
  readonly rule?: ViolatedRule
}

/** The script of a simulated call. `hangs`: nothing follows the steps. `isDeaf`: it continues after an abort. */
export interface Behaviour {
  readonly steps: readonly Step[]
  readonly hangs?: boolean
  readonly isDeaf?: boolean
}

/** One recorded call. */
export interface SeenCall {
  readonly member: FusionMember
  readonly call: SubCall
  readonly startedMs: number
  /** Whether it was read completely before it was abandoned. */
  isDelivered: boolean
  closedMs: number | undefined
  usage: Usage | undefined
}

export type Behave = (member: FusionMember, call: SubCall, nth: number) => Behaviour

/** Implements fusion's port with simulated models, whose answers and timing are scripted. */
export class SimulatedModels implements FusionPort {
  readonly clock: SimulatedTime
  readonly random: FusionPort['random']
  readonly seen: SeenCall[] = []
  readonly emitted: AnswerEvent[] = []
  firstEmitMs: number | undefined
  firstContentMs: number | undefined
  /** How the reader of the answer reacts to each write; by default it accepts everything at once. */
  onEmit: ((count: number) => Promise<void> | undefined) | undefined
  readonly #behave: Behave

  constructor(clock: SimulatedTime, behave: Behave, seed = 1) {
    this.clock = clock
    this.#behave = behave
    const number = seededRandom(seed)
    this.random = (count) => Uint8Array.from({ length: count }, () => Math.floor(number() * 256))
  }

  get open(): number {
    return this.seen.filter(({ closedMs }) => closedMs === undefined).length
  }

  emit(events: readonly AnswerEvent[]): Promise<void> | undefined {
    this.firstEmitMs ??= this.clock.nowMs()
    if (events.some(({ type }) => type === 'text' || type === 'refusal' || type === 'call'))
      this.firstContentMs ??= this.clock.nowMs()
    this.emitted.push(...events)
    return this.onEmit?.(this.emitted.length)
  }

  callModel(member: FusionMember, call: SubCall, signal: AbortSignal): ModelAnswer {
    const nth = this.seen.filter(({ call: { role } }) => role === call.role).length
    const seen: SeenCall = {
      member,
      call,
      startedMs: this.clock.nowMs(),
      isDelivered: false,
      closedMs: undefined,
      usage: undefined,
    }
    this.seen.push(seen)
    const behaviour = this.#behave(member, call, nth)
    const close = (): void => {
      seen.closedMs ??= this.clock.nowMs()
    }
    signal.addEventListener('abort', close, { once: true })
    const batches = this.#play(behaviour, seen, signal)
    return call.conversation.stream ? batches : gather(batches)
  }

  async *#play(
    { steps, hangs, isDeaf }: Behaviour,
    seen: SeenCall,
    signal: AbortSignal,
  ): AsyncGenerator<AnswerEvent[]> {
    const stop = isDeaf === true ? new AbortController().signal : signal
    for (const { afterMs, events, fails, rule } of steps) {
      await this.#sleep(afterMs, stop)
      if (fails !== undefined) {
        seen.closedMs ??= this.clock.nowMs()
        throw new UpstreamError(fails, rule && { rejection: { rule } })
      }
      for (const event of events ?? []) if (event.type === 'usage' && !signal.aborted) seen.usage = event.usage
      if (events !== undefined) yield [...events]
    }
    if (hangs === true) await this.#sleep(Number.POSITIVE_INFINITY, stop)
    seen.isDelivered = !signal.aborted
    seen.closedMs ??= this.clock.nowMs()
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        timer?.cancel()
        reject(new UpstreamError('cancelled'))
      }
      const timer = Number.isFinite(ms)
        ? this.clock.after(ms, () => {
            signal.removeEventListener('abort', leave)
            resolve()
          })
        : undefined
      if (signal.aborted) leave()
      else signal.addEventListener('abort', leave, { once: true })
    })
  }
}

async function gather(batches: AsyncIterable<readonly AnswerEvent[]>): Promise<readonly AnswerEvent[]> {
  const all: AnswerEvent[] = []
  for await (const events of batches) all.push(...events)
  return all
}

/** The usage of a simulated answer. */
export function usageOf(inputTokens: number, outputTokens: number): Usage {
  return {
    inputTokens,
    outputTokens,
    cachedTokens: inputTokens >> 1,
    reasoningTokens: outputTokens >> 2,
    source: 'counted',
  }
}

/** An answer with one text. */
export function textAnswer(text: string, afterMs = 1_000, usage = usageOf(100, 20)): Behaviour {
  const events: AnswerEvent[] = [
    { type: 'start', id: 'upstream-private-id', model: 'upstream-private-model' },
    { type: 'text', text },
    { type: 'usage', usage },
    { type: 'finish', reason: 'stop' },
  ]
  return { steps: [{ afterMs, events }] }
}

/** An answer that arrives word by word at this interval. */
export function streamedAnswer(text: string, everyMs = 20, usage = usageOf(300, 40)): Behaviour {
  const words = text.match(/\S+\s*/g) ?? []
  const steps = words.map((word): Step => ({ afterMs: everyMs, events: [{ type: 'text', text: word }] }))
  const last: AnswerEvent[] = [
    { type: 'usage', usage },
    { type: 'finish', reason: 'stop' },
  ]
  return { steps: [...steps, { afterMs: everyMs, events: last }] }
}

let members = 0

/** A simulated member, by default with its own family and failure domain. */
export function simulatedMember(of: Partial<FusionMember> = {}): FusionMember {
  members += 1
  const id = `backend-private-${members}`
  return {
    id,
    model: `model-private-${members}`,
    family: `family-private-${members}`,
    failureDomain: `domain-private-${members}`,
    quality: 80,
    ...of,
  }
}

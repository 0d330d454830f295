import type { CallRole, DropOut } from '../../../../domain/fusion-record.ts'
import { aborted } from '../../../../runtime/aborted.ts'
import type { Timer } from '../../../../runtime/clock.ts'
import type { CostTracker } from '../cost-tracker.ts'
import { callModel, type ModelCallEnd } from '../model-call.ts'
import type { FusionPlan, PlannedSlot } from '../plan.ts'
import type { FusionMember, FusionPort } from '../ports.ts'
import type { FusionSettings } from '../settings.ts'
import type { PanelRequests } from './panel-request.ts'

/** After the quorum, the other members get this share of the time that the quorum took, within these bounds. */
const graceShare = 0.5
const shortestGraceMs = 2_000
/** As a share of the panel's time limit. */
const longestGraceShare = 0.1
/**
 * Share of the total time to wait for the first answer if there is none at the panel's limit, so that finished
 * reasoning is not thrown away.
 */
const patienceShare = 0.7
/** Calls per slot, including hedges and refills. */
const dispatchesPerSlot = 2

/** One answer of the panel. */
export interface PanelAnswer {
  readonly member: FusionMember
  readonly text: string
  readonly truncated: boolean
}

export interface PanelResult {
  /** In slot order, whatever the order of arrival. */
  readonly answers: readonly PanelAnswer[]
  /** The texts of members that refused to answer; empty for those that gave none. */
  readonly refusals: readonly string[]
  /** Whether a provider refused with an error. */
  readonly isRejected: boolean
  readonly dropOuts: readonly DropOut[]
  readonly asked: number
  readonly quorum: number
  readonly ms: number
}

/** Members that were aborted before they answered: slow, but not failed. */
export function abortedMembers({ dropOuts }: PanelResult): ReadonlySet<string> {
  return new Set(dropOuts.flatMap(({ member, why }) => (why === 'cut' ? [member] : [])))
}

/** Members that are not worth calling again; one that was only aborted has not failed. */
export function failedMembers({ dropOuts }: PanelResult): ReadonlySet<string> {
  return new Set(dropOuts.flatMap(({ member, why }) => (why === 'cut' ? [] : [member])))
}

export interface PanelOptions {
  readonly port: FusionPort
  readonly costs: CostTracker
  readonly plan: FusionPlan
  readonly settings: FusionSettings
  readonly requests: PanelRequests
  /** US dollars to leave for judging and writing. */
  readonly keepUsd: number
  readonly signal: AbortSignal
  /** Called at each answer. */
  readonly onAnswer: (answered: number) => void
}

interface Slot {
  readonly planned: PlannedSlot
  readonly abort: AbortController
  running: number
  answer?: PanelAnswer
  /** Whether its member refused, which counts as its answer (contract 15.21). */
  refused: boolean
  refilled: boolean
  hedge?: Timer
}

/**
 * Asks all members at once and waits for a quorum, then for a grace period proportional to the time that the quorum
 * took. A slot that fails is refilled once; a slow one is hedged with a second call elsewhere while the quorum is
 * incomplete. If no member has answered by the panel's limit, it keeps waiting, and then one answer is enough. Rejects
 * only on a bug.
 */
export async function runPanel(options: PanelOptions): Promise<PanelResult> {
  return new Panel(options).run()
}

class Panel {
  readonly #options: PanelOptions
  readonly #slots: readonly Slot[]
  readonly #quorum: number
  readonly #reserves: FusionMember[]
  readonly #refusals: string[] = []
  #isRejected = false
  readonly #dropOuts: DropOut[] = []
  readonly #longestMs: number
  readonly #startedMs: number
  readonly #done = Promise.withResolvers<void>()
  #dispatches = 0
  #answered = 0
  #timers: Timer[] = []
  #isOver = false
  /** The panel's limit passed without an answer. */
  #isLate = false
  #failure: { readonly error: unknown } | undefined

  constructor(options: PanelOptions) {
    this.#options = options
    this.#slots = options.plan.slots.map((planned) => ({
      planned,
      abort: new AbortController(),
      running: 0,
      refused: false,
      refilled: false,
    }))
    this.#quorum = Math.min(options.settings.quorum ?? Math.ceil(this.#slots.length / 2), this.#slots.length)
    this.#reserves = [...options.plan.reserves]
    this.#longestMs = Math.max(options.settings.panelMs, options.settings.totalMs * patienceShare)
    this.#startedMs = options.port.clock.monotonicMs()
  }

  async run(): Promise<PanelResult> {
    const { port, settings, signal } = this.#options
    const leave = (): void => this.#finish()
    signal.addEventListener('abort', leave, { once: true })
    this.#timers.push(port.clock.after(settings.panelMs, () => this.#passLimit()))
    if (signal.aborted) this.#finish()
    else for (const slot of this.#slots) this.#begin(slot)
    try {
      await this.#done.promise
    } finally {
      signal.removeEventListener('abort', leave)
    }
    if (this.#failure !== undefined) throw this.#failure.error
    return {
      answers: this.#slots.flatMap(({ answer }) => (answer === undefined ? [] : [answer])),
      refusals: this.#refusals,
      isRejected: this.#isRejected,
      dropOuts: this.#dropOuts,
      asked: this.#slots.length,
      quorum: this.#quorum,
      ms: Math.round(port.clock.monotonicMs() - this.#startedMs),
    }
  }

  #begin(slot: Slot): void {
    const { member } = slot.planned
    const { slowAfterMs } = member
    if (slowAfterMs !== undefined && slowAfterMs < this.#options.settings.panelMs) {
      slot.hedge = this.#options.port.clock.after(slowAfterMs, () => this.#hedge(slot))
      this.#timers.push(slot.hedge)
    }
    this.#dispatch(slot, member, 'panel')
  }

  #dispatch(slot: Slot, member: FusionMember, role: CallRole): void {
    const { port, costs, requests, keepUsd } = this.#options
    this.#dispatches += 1
    slot.running += 1
    const call = { role, conversation: requests.requestFor(slot.planned, member) }
    const { signal } = slot.abort
    callModel({ port, costs, member, call, limitMs: this.#longestMs, keepUsd, signal }).then(
      (end) => this.#ended(slot, member, end),
      (error: unknown) => {
        this.#failure ??= { error }
        this.#finish()
      },
    )
  }

  #ended(slot: Slot, member: FusionMember, end: ModelCallEnd): void {
    slot.running -= 1
    if (end.status !== 'answered') this.#dropOuts.push({ member: member.id, why: end.status })
    if (end.status === 'refused') this.#refusals.push(end.refusal)
    else if (end.refused && end.status !== 'answered') this.#isRejected = true
    slot.refused ||= end.refused
    if (this.#isOver) {
      this.#resolveWhenIdle()
      return
    }
    if (end.status === 'answered' && slot.answer === undefined) this.#accept(slot, member, end)
    else if (slot.answer === undefined && slot.running === 0) this.#refill(slot, end)
    if (this.#slots.every(({ answer, running }) => answer !== undefined || running === 0)) this.#finish()
  }

  #accept(slot: Slot, member: FusionMember, { text, truncated }: ModelCallEnd): void {
    slot.answer = { member, text, truncated }
    slot.hedge?.cancel()
    slot.abort.abort(aborted)
    this.#answered += 1
    this.#options.onAnswer(this.#answered)
    if (this.#answered !== (this.#isLate ? 1 : this.#quorum)) return
    const { clock } = this.#options.port
    const longestMs = Math.max(shortestGraceMs, this.#options.settings.panelMs * longestGraceShare)
    const proportionalMs = (clock.monotonicMs() - this.#startedMs) * graceShare
    const graceMs = Math.min(longestMs, Math.max(shortestGraceMs, proportionalMs))
    this.#timers.push(clock.after(graceMs, () => this.#finish()))
  }

  /** Aborting all running calls and asking one member again would take longer than waiting for them. */
  #passLimit(): void {
    if (this.#answered > 0) return this.#finish()
    this.#isLate = true
    const { settings, port } = this.#options
    this.#timers.push(port.clock.after(this.#longestMs - settings.panelMs, () => this.#finish()))
    // Reasoning and hanging look the same, so members that were not called yet are called now.
    for (const slot of this.#slots) this.#hedge(slot)
  }

  /** One more call for a slot without a running call: to another member. */
  #refill(slot: Slot, { status }: ModelCallEnd): void {
    if (slot.refused || slot.refilled || !this.#mayDispatch() || status === 'unaffordable') return
    const member = this.#takeReserve()
    if (member === undefined) return
    slot.refilled = true
    slot.hedge?.cancel()
    this.#dispatch(slot, member, 'refill')
  }

  /**
   * A second call alongside a slow one, to the same model elsewhere if possible. Once the quorum is complete, the
   * grace period is enough.
   */
  #hedge(slot: Slot): void {
    if (this.#isOver || slot.answer !== undefined || slot.refused) return
    if (this.#answered >= this.#quorum || !this.#mayDispatch()) return
    const member = this.#takeReserve(slot.planned.member.model)
    if (member !== undefined) this.#dispatch(slot, member, 'hedge')
  }

  #mayDispatch(): boolean {
    return this.#dispatches < this.#slots.length * dispatchesPerSlot
  }

  #takeReserve(model?: string): FusionMember | undefined {
    const sibling = model === undefined ? -1 : this.#reserves.findIndex((member) => member.model === model)
    return this.#reserves.splice(Math.max(0, sibling), 1)[0]
  }

  /** Stops waiting: aborts what is running and records its end. */
  #finish(): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const timer of this.#timers) timer.cancel()
    for (const { abort } of this.#slots) abort.abort(aborted)
    this.#resolveWhenIdle()
  }

  /** Aborted calls end in this turn of the event loop, and belong in the record. */
  #resolveWhenIdle(): void {
    if (this.#failure !== undefined || this.#slots.every(({ running }) => running === 0)) this.#done.resolve()
  }
}

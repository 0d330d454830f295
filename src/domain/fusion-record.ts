import type { Usage } from './conversation.ts'
import type { ErrorCode } from './errors.ts'
import type { PresetName } from './fusion-presets.ts'
import type { AttemptOutcome } from './upstream.ts'

/** The kind of answer that the question calls for, according to the judge. */
export type AnswerType = 'open' | 'closed' | 'code' | 'structured' | 'action'

/** The server's decision after the judge's findings. */
export type Verdict = 'adopt' | 'synthesize' | 'insufficient'

/**
 * How the answer was made. `adopted`: a panel answer, unchanged, chosen by the judge; `agreed`: unchanged, because all
 * answers agree; `synthesised`: written from all of them; `restarted`: written anew, because none was trusted;
 * `single`: the only answer; `medoid`: the most central one, chosen without a model; `merged`: structured answers
 * merged field by field; `refused`: every model refused; `fallback`: one model alone, because the panel gave no answer.
 */
export type FusionMode =
  | 'adopted'
  | 'agreed'
  | 'synthesised'
  | 'restarted'
  | 'single'
  | 'medoid'
  | 'merged'
  | 'refused'
  | 'fallback'

/** A step of degraded operation that was taken. */
export type Degradation =
  | 'member_lost'
  | 'below_quorum'
  | 'panel_failed'
  | 'judge_repaired'
  | 'judge_replaced'
  | 'no_analysis'
  | 'second_look_failed'
  | 'synthesis_failed'
  | 'synthesis_broken'
  | 'cost_cap'
  | 'deadline'

/** The purpose of a call. `outer` is a turn of the calling model, which has the fusion tool. */
export type CallRole = 'panel' | 'refill' | 'hedge' | 'judge' | 'repair' | 'swap' | 'synthesis' | 'fallback' | 'outer'

/**
 * How a call ended. `empty`: no content; `refused`: the model refused; `unsayable`: its format cannot express the
 * request; `cut`: it was aborted because its answer was no longer needed; `unaffordable`: never sent.
 */
export type CallStatus = AttemptOutcome | 'empty' | 'refused' | 'unsayable' | 'cut' | 'unaffordable'

/** Stored names that are not words that people use. The playground has the same ones in `playground-make.js`. */
const shownNames: Readonly<Partial<Record<CallStatus | CallRole | FusionMode | Degradation, string>>> = {
  cancelled: 'canceled',
  cut: 'aborted',
  unsayable: 'not expressible',
  synthesised: 'synthesized',
  medoid: 'most typical answer',
  swap: 'second judgment',
  outer: 'answering model',
  refill: 'replacement',
  second_look_failed: 'second judgment failed',
}

/** The outcome of an attempt, or a status, role, mode, or degradation of a fusion, as people see it. JSON keeps the stored spelling. */
export function shownName(name: CallStatus | CallRole | FusionMode | Degradation): string {
  return shownNames[name] ?? name.replaceAll('_', ' ')
}

/** One call, for the record and the breakdown of usage. `member` is the id of a backend, which clients do not see. */
export interface CallRecord {
  readonly role: CallRole
  readonly member: string
  readonly status: CallStatus
  readonly ms: number
  /** Absent if nothing came back. */
  readonly usage?: Usage
  /** US dollars, if the price is known. */
  readonly costUsd?: number
}

/** A member that gave no answer, and why. */
export interface DropOut {
  readonly member: string
  readonly why: CallStatus
}

/** One fusion in the record of a request: figures and names of backends and steps, but no text (contract 15.20). */
export interface FusionRecord {
  readonly preset: PresetName
  /** Versions of the prompts. */
  readonly prompts: Readonly<Record<string, string>>
  /** Absent if there was no answer. */
  readonly mode?: FusionMode
  readonly asked: number
  readonly answered: number
  readonly quorum: number
  readonly isSelfPanel: boolean
  readonly dropOuts: readonly DropOut[]
  readonly verdict?: Verdict
  readonly answerType?: AnswerType
  readonly disagreements?: number
  readonly degraded: readonly Degradation[]
  /** In the order in which the calls ended. */
  readonly calls: readonly CallRecord[]
  readonly panelMs: number
  readonly judgeMs: number
  readonly totalMs: number
  readonly costUsd?: number
  readonly errorCode?: ErrorCode | 'client_closed'
}

/** Bounds of one record, far above what a fusion can do, so that rows stay small even after a bug. */
const maxCalls = 64
const maxDropOuts = 64

/** The same record within the bounds of a row. */
export function boundRecord(record: FusionRecord): FusionRecord {
  const { calls, dropOuts } = record
  if (calls.length <= maxCalls && dropOuts.length <= maxDropOuts) return record
  return { ...record, calls: calls.slice(0, maxCalls), dropOuts: dropOuts.slice(0, maxDropOuts) }
}

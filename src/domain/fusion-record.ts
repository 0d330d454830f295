import type { Usage } from './conversation.ts'
import type { ErrorCode } from './errors.ts'
import type { PresetName } from './fusion-presets.ts'
import type { AttemptOutcome } from './upstream.ts'

/** What kind of answer the judge says was asked for. */
export type AnswerType = 'open' | 'closed' | 'code' | 'structured' | 'action'

/** What the server makes of the judge's findings. */
export type Verdict = 'adopt' | 'synthesize' | 'insufficient'

/**
 * How the answer came about. `adopted`: one panel answer as it is, by the judge; `agreed`: as it is, since all say the
 * same; `synthesised`: written from all of them; `restarted`: written afresh because none was trusted; `single`: the only
 * one; `medoid`: the most central one, chosen without a model; `merged`: structured answers put together
 * field by field; `refused`: nobody would answer; `fallback`: one model
 * alone, because the panel gave nothing.
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

/** A step of the failure ladder that was taken. */
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

/** What a sub-call is for; `outer` is a turn of the model that has the fusion tool. */
export type CallRole = 'panel' | 'refill' | 'hedge' | 'judge' | 'repair' | 'swap' | 'synthesis' | 'fallback' | 'outer'

/**
 * How a call ended. `empty`: nothing was said; `refused`: the model would not; `unsayable`: its format cannot say what
 * was asked; `cut`: it was no longer waited for; `unaffordable`: never dispatched.
 */
export type CallStatus = AttemptOutcome | 'empty' | 'refused' | 'unsayable' | 'cut' | 'unaffordable'

/** One sub-call in the record and in the breakdown of usage. `member` is a backend's id and stays inside. */
export interface CallRecord {
  readonly role: CallRole
  readonly member: string
  readonly status: CallStatus
  readonly ms: number
  /** Absent where nothing came back. */
  readonly usage?: Usage
  /** US dollars, where the price is known. */
  readonly costUsd?: number
}

/** A member that gave no answer, and why. */
export interface DropOut {
  readonly member: string
  readonly why: CallStatus
}

/** The trail of one fusion for the request's record: numbers, names of backends and of steps; no text (contract 15.20). */
export interface FusionRecord {
  readonly preset: PresetName
  /** Versions of the words that the models were told. */
  readonly prompts: Readonly<Record<string, string>>
  /** Absent where nothing was answered. */
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
  /** In the order in which they ended. */
  readonly calls: readonly CallRecord[]
  readonly panelMs: number
  readonly judgeMs: number
  readonly totalMs: number
  readonly costUsd?: number
  readonly errorCode?: ErrorCode | 'client_closed'
}

/** Bounds on one record, far above what one fusion can do: a row must not grow whatever goes wrong. */
const maxCalls = 64
const maxDropOuts = 64

/** The same record with at most as many entries as a row may hold. */
export function boundRecord(record: FusionRecord): FusionRecord {
  const { calls, dropOuts } = record
  if (calls.length <= maxCalls && dropOuts.length <= maxDropOuts) return record
  return { ...record, calls: calls.slice(0, maxCalls), dropOuts: dropOuts.slice(0, maxDropOuts) }
}

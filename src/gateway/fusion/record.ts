import type { ErrorCode } from '../../domain/errors.ts'
import type { AnswerType } from './analysis.ts'
import type { CallRecord } from './book.ts'
import type { DropOut } from './panel.ts'
import type { PresetName } from './settings.ts'

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

/** The trail of one fusion for the request's record: numbers, names of backends and of steps; no text (contract 8). */
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
  readonly verdict?: 'adopt' | 'synthesize' | 'insufficient'
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

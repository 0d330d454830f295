import type { AnswerEvent, Conversation } from '../../domain/conversation.ts'
import type { FusionRecord } from '../../domain/fusion-record.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { buildCandidates } from '../../gateway/fusion/engine/candidates.ts'
import { fuse } from '../../gateway/fusion/engine/fusion.ts'
import type { FusionMember } from '../../gateway/fusion/engine/ports.ts'
import { hashText, seededRandom } from '../../gateway/fusion/engine/seeded-random.ts'
import type { FusionSettings } from '../../gateway/fusion/engine/settings.ts'
import { EvaluationStop, type EvalPort } from '../ports.ts'
import { findAnswer, isRight } from '../questions/check-answer.ts'
import type { Question } from '../questions/question.ts'
import type { ArmCall, Interception, Recorder } from '../recorder.ts'
import type { ArmResult } from './arm-result.ts'
import { isJudging } from './placebo-judges.ts'

export interface FusionArmOptions {
  readonly recorder: Recorder
  readonly clock: EvalPort['clock']
  readonly question: Question
  readonly conversation: Conversation
  readonly members: readonly FusionMember[]
  readonly settings: FusionSettings
  readonly seed: number
  readonly intercept?: Interception
  readonly signal: AbortSignal
}

export interface FusedResult extends ArmResult {
  readonly record: FusionRecord
  /** The text after `ANSWER:` in the reply. */
  readonly answer: string | undefined
  /** How often a randomly chosen candidate would have been right. */
  readonly expectedRight: number
}

/** Answers one question with the service's own engine, using recorded calls (contract 34.1). @throws EvaluationStop */
export async function runFusion(options: FusionArmOptions): Promise<FusedResult> {
  const { recorder, clock, question, conversation, members, settings, seed, signal } = options
  const trace = recorder.trace(options.intercept)
  const said: AnswerEvent[] = []
  const number = seededRandom(hashText(`engine ${question.number}`, seed))
  const port = {
    clock,
    // Seeded, so that the marks in prompts are the same when the evaluation is continued.
    random: (count: number): Uint8Array => Uint8Array.from({ length: count }, () => Math.floor(number() * 256)),
    emit: (events: readonly AnswerEvent[]): undefined => {
      said.push(...events)
    },
    callModel: trace.callModel.bind(trace),
  }
  const { record, deliberation, error } = await fuse(
    { conversation, members, settings: { ...settings, seed } },
    port,
    signal,
  )
  if (trace.stop !== undefined) throw trace.stop
  if (signal.aborted) throw new EvaluationStop('asked')
  const text = error === undefined ? said.map((event) => (event.type === 'text' ? event.text : '')).join('') : ''
  const candidates = buildCandidates(deliberation.panel.answers)
  const rightOnes = candidates.filter((candidate) => isRight(question.expected, candidate.answer.text)).length
  return {
    isRight: isRight(question.expected, text),
    answer: findAnswer(text),
    hasAnswer: findAnswer(text) !== undefined,
    ...takenBy(trace.calls),
    record,
    expectedRight: candidates.length === 0 ? 0 : rightOnes / candidates.length,
  }
}

/** No judge compares the answers: the writer gets them unchanged, as if the judge had not answered. */
export const withoutAnalysis: Interception = (_member, { role }) =>
  isJudging(role) ? new UpstreamError('unreachable') : undefined

/** Replaces one member's answer in the panel with a text. */
export function tampered(memberId: string, text: string): Interception {
  return (member, { role }) =>
    role === 'panel' && member.id === memberId
      ? [
          { type: 'text', text },
          { type: 'finish', reason: 'stop' },
        ]
      : undefined
}

/** The panel is asked in parallel and completely; the following steps are sequential. */
function takenBy(calls: readonly ArmCall[]): { readonly ms: number; readonly usd: number } {
  const panel = calls.filter(({ role }) => role === 'panel')
  const rest = calls.filter(({ role }) => role !== 'panel')
  return {
    ms: Math.max(0, ...panel.map(({ ms }) => ms)) + rest.reduce((sum, { ms }) => sum + ms, 0),
    usd: calls.reduce((sum, { usd }) => sum + usd, 0),
  }
}

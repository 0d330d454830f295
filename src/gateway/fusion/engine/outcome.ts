import type { Usage } from '../../../domain/conversation.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { CallRecord, CallStatus, FusionMode, FusionRecord } from '../../../domain/fusion-record.ts'
import { ruleWords } from '../../routing/rejection-errors.ts'
import type { Deliberation } from './deliberate.ts'
import type { FusionRun } from './fusion-run.ts'
import { promptVersions } from './prompts.ts'

/** How one fusion ended. */
export interface FusionOutcome {
  /** Absent if the answer is complete or the client disconnected. */
  readonly error?: ServiceError
  readonly isClientDisconnected: boolean
  /** The sum of all sub-calls. */
  readonly usage: Usage
  readonly record: FusionRecord
  /** The findings, for a caller that may see them; in memory only. */
  readonly deliberation: Deliberation
}

/** How an answer was produced, or that there is none. */
export interface AnswerSummary {
  readonly mode?: FusionMode
  readonly error?: ServiceError
}

/** Assembles what is recorded and returned. */
export function outcomeOf(run: FusionRun, answered: AnswerSummary, deliberation: Deliberation): FusionOutcome {
  const { costs, isClientDisconnected, plan } = run
  const { panel, judgeMs } = deliberation
  const { costUsd } = costs
  const error = isClientDisconnected ? undefined : answered.error
  const errorCode = isClientDisconnected ? 'client_closed' : error?.code
  const record: FusionRecord = {
    preset: run.request.settings.preset,
    prompts: promptVersions,
    ...(answered.mode === undefined ? {} : { mode: answered.mode }),
    asked: panel.asked,
    answered: panel.answers.length,
    quorum: panel.quorum,
    isSelfPanel: plan.isSelfPanel,
    dropOuts: panel.dropOuts,
    ...verdictOf(deliberation),
    degraded: run.degraded,
    calls: costs.records,
    panelMs: panel.ms,
    judgeMs,
    totalMs: run.elapsedMs,
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(errorCode === undefined ? {} : { errorCode }),
  }
  const { usage } = costs
  return { ...(error === undefined ? {} : { error }), isClientDisconnected, usage, record, deliberation }
}

function verdictOf({
  decision,
  analyses,
}: Deliberation): Pick<FusionRecord, 'verdict' | 'answerType' | 'disagreements'> {
  const [analysis] = analyses
  if (decision === undefined || analysis === undefined) return {}
  const { answerType, contradictions } = analysis
  return { verdict: decision.verdict, answerType, disagreements: contradictions.length }
}

/** The error if a provider refused and no model answered. */
export function refusedError(): ServiceError {
  return new ServiceError('content_rejected', { status: 400, words: { rule: `: ${ruleWords.content_filter}` } })
}

/** The error if no model answered: the common cause of all calls, or else that no model is available. */
export function panelFailedError(run: FusionRun): ServiceError {
  const { profile } = run.request.conversation
  const statuses = new Set(run.costs.records.map(({ status }: CallRecord) => status))
  // An aborted call says nothing about the others.
  statuses.delete('cut')
  const areAll = (status: CallStatus): boolean => statuses.size === 1 && statuses.has(status)
  if (statuses.size === 0 && run.degraded.includes('cost_cap')) {
    const problem = 'parameters.max_cost_usd is too low for a single answer. Raise it, or send a shorter request.'
    return new ServiceError('invalid_request', { param: 'parameters.max_cost_usd', words: { problem } })
  }
  if (areAll('rejected_content') || areAll('not_capable')) return new ServiceError('content_rejected', { status: 400 })
  if (areAll('context_too_long')) return new ServiceError('context_length_exceeded', { words: { profile } })
  if (areAll('not_found')) return new ServiceError('upstream_misconfigured')
  if (areAll('rejected_credentials')) return new ServiceError('upstream_credentials_rejected')
  if (run.remainingMs === 0 || areAll('timeout') || statuses.size === 0) {
    const seconds = Math.max(1, Math.floor(run.elapsedMs / 1000))
    return new ServiceError('upstream_timeout', { words: { profile, seconds } })
  }
  return new ServiceError('server_is_overloaded', { retryAfterSeconds: 1, words: { profile, seconds: 1 } })
}

import type { ServiceCall } from '../../../domain/conversation.ts'
import type { Degradation } from '../../../domain/fusion-record.ts'
import type { JsonObject } from '../../../domain/json.ts'
import type { Draft } from '../../../formats/fields.ts'
import type { Deliberation } from './deliberate.ts'
import type { Analysis } from './judge/analysis.ts'
import type { FusionOutcome } from './outcome.ts'
import type { FusionSettings } from './settings.ts'

export interface ReportOptions {
  readonly deliberation: Deliberation
  readonly degraded: readonly Degradation[]
  readonly include: FusionSettings['include']
  readonly totalMs: number
}

/**
 * What a caller may see of a deliberation: how many models answered, whether the answers were compared, and what the
 * caller requested with `include`. Models appear only under their labels (contract 15.7).
 */
export function buildReport({ deliberation, degraded, include, totalMs }: ReportOptions): JsonObject {
  const { panel, candidates, analyses, decision, judgeMs } = deliberation
  const [analysis] = analyses
  const report: Draft<JsonObject> = {
    panel: [
      ...panel.answers.map(() => ({ status: 'answered' })),
      ...panel.dropOuts.map(({ why }) => ({ status: why })),
    ],
    judge: { status: judgeStatus(deliberation, degraded) },
    degraded,
  }
  if (decision !== undefined) report['verdict'] = decision.verdict
  if (analysis !== undefined) report['disagreements'] = analysis.contradictions.length
  if (include.includes('analysis') && analysis !== undefined) report['analysis'] = writeAnalysis(analysis)
  if (include.includes('responses'))
    report['responses'] = candidates.map(({ label, answer }) => ({ model: label, content: answer.text }))
  if (include.includes('scores') && decision !== undefined)
    report['scores'] = Object.fromEntries(
      decision.ranking.map(({ candidate: { label }, total }) => [label, { ...analysis?.scores[label], total }]),
    )
  if (include.includes('timings')) report['timings'] = { panel_ms: panel.ms, judge_ms: judgeMs, total_ms: totalMs }
  return report
}

/** The report of a whole fusion, for a request to the fusion model (contract 15.13). */
export function buildReportFromRecord(
  { deliberation, record }: FusionOutcome,
  include: FusionSettings['include'],
): JsonObject {
  const { mode, degraded, totalMs } = record
  return { ran: true, runs: 1, reason: 'user_turn', mode, ...buildReport({ deliberation, degraded, include, totalMs }) }
}

/** A fusion as an item of the answer. */
export function publicCall(
  shape: ServiceCall['shape'],
  call: { readonly arguments: JsonObject; readonly result: JsonObject; readonly error?: string | undefined },
): ServiceCall {
  const { error, result } = call
  const payload = error === undefined ? { output: JSON.stringify(result) } : { error }
  return { type: 'service_call', shape, arguments: JSON.stringify(call.arguments), ...payload }
}

function judgeStatus(
  { panel, analyses, areAgreed }: Deliberation,
  degraded: readonly Degradation[],
): 'answered' | 'repaired' | 'replaced' | 'agreed' | 'skipped' | 'failed' {
  if (areAgreed) return 'agreed'
  if (panel.answers.length < 2) return 'skipped'
  if (analyses.length === 0) return 'failed'
  if (degraded.includes('judge_replaced')) return 'replaced'
  return degraded.includes('judge_repaired') ? 'repaired' : 'answered'
}

/** Uses other services' names for these fields, with labels in place of models. */
function writeAnalysis(analysis: Analysis): JsonObject {
  return {
    answer_type: analysis.answerType,
    consensus: analysis.consensus.map(({ claim }) => claim),
    contradictions: analysis.contradictions.map(({ topic, material, positions, side, check }) => ({
      topic,
      material,
      stances: positions.flatMap(({ labels, claim }) => labels.map((model) => ({ model, stance: claim }))),
      resolved_for: side,
      check,
    })),
    partial_coverage: analysis.partialCoverage.map(({ labels, point }) => ({ models: labels, point })),
    unique_insights: analysis.uniqueInsights.map(({ label, insight }) => ({ model: label, insight })),
    blind_spots: analysis.blindSpots,
    outline: analysis.outline,
  }
}

// Shows a fusion: its report, and each call from the request record.

import { at, count, facts, make, plain, table, tag, time } from './playground-make.js'

/** @import { FusionAnalysis, FusionReport, PlaygroundFusion, PlaygroundTrail, PlaygroundUsage } from '../playground-types.ts' */
/** @typedef {readonly [name: string, value: string | undefined]} Fact */

/** @type {Record<string, string>} */
const whyNot = {
  not_called: 'The model answered without consulting the others.',
  waiting_for_tools: 'The fusion is waiting for the results of your tools.',
  overloaded: 'This service is overloaded, so one model answered alone.',
  rate_limited: 'No more fusions could run at the same time, so one model answered alone.',
  no_member_available: 'No other model was available, so one model answered alone.',
  all_panels_failed: 'None of the other models answered, so one model answered alone.',
  deadline: 'Too little time was left for a fusion, so one model answered alone.',
  tool_loop: 'The last message is the result of a tool, so one model answered alone.',
  short_answer: 'The answer is limited to a few tokens, so one model answered alone.',
}
const costDigits = 4

/**
 * Shows the fusion, if there was one.
 * @param {FusionReport | undefined} report
 * @param {PlaygroundTrail | undefined} trail
 */
export function showFusion(report, trail) {
  const runs = trail?.fusions ?? []
  if (report === undefined && runs.length === 0) return
  at('fused').replaceChildren(
    ...wordsOf(report),
    facts([...factsOf(report), ...runs.flatMap(runFacts)]),
    ...analysisOf(report?.analysis),
    ...runs.map(callTable),
  )
}

/** @param {FusionReport | undefined} report */
function wordsOf(report) {
  if (report?.ran === false) return [make('p', {}, whyNot[report.reason ?? ''] ?? plain(report.reason))]
  if (report?.failure_reason === undefined) return []
  return [make('p', {}, `It failed: ${plain(report.failure_reason)}. One model answered alone.`)]
}

/** @param {FusionReport | undefined} report @returns {Fact[]} */
function factsOf(report) {
  const { panel, judge, mode, verdict, disagreements, degraded = [] } = report ?? {}
  if (panel === undefined) return []
  const answered = panel.filter(({ status }) => status === 'answered').length
  return [
    ['Models asked', `${answered} of ${count(panel.length, 'model')} answered`],
    ['Comparison of the answers', plain(judge?.status)],
    ['Result of the comparison', verdict],
    // With the tool, the report has the tool's parameter instead.
    ['Reply', mode === 'auto' || mode === 'always' ? undefined : mode && plain(mode)],
    ['Disagreements', disagreements === undefined ? undefined : String(disagreements)],
    ['Problems', degraded.map(plain).join(', ') || 'none'],
  ]
}

/** @param {PlaygroundFusion} fusion @returns {Fact[]} */
function runFacts({ dropOuts, costUsd }) {
  const dropped = dropOuts.map(({ member, why }) => `${member} (${plain(why)})`).join(', ')
  return [
    ['Dropped', dropped || 'none'],
    ['Cost', costUsd === undefined ? 'unknown: a price is unknown' : `${costUsd.toFixed(costDigits)} USD`],
  ]
}

/** @param {PlaygroundFusion} fusion */
function callTable({ calls }) {
  /** @param {PlaygroundUsage | undefined} usage */
  const tokens = (usage) => usage && `${usage.inputTokens} in, ${usage.outputTokens} out`
  const rows = calls.map(({ role, member, status, ms, usage }) => [
    plain(role),
    member,
    tag(status),
    time(ms),
    tokens(usage),
  ])
  return table('Calls of the fusion', ['Role', 'Backend', 'Result', 'Time', 'Tokens'], rows)
}

/**
 * Consensus and disagreements; models are identified by letters.
 * @param {FusionAnalysis | undefined} analysis
 */
function analysisOf(analysis) {
  if (analysis === undefined) return []
  /** @param {string} who @param {string} text */
  const by = (who, text) => make('li', {}, make('strong', {}, `${who}: `), text)
  const { consensus, contradictions, unique_insights: unique, partial_coverage: partial, blind_spots: blind } = analysis
  return [
    make('p', {}, 'Each letter stands for one distinct answer from the models.'),
    ...list(
      'Consensus',
      consensus.map((claim) => make('li', {}, claim)),
    ),
    ...list('Disagreements', contradictions.map(difference)),
    ...list(
      'Mentioned by one model',
      unique.map(({ model, insight }) => by(model, insight)),
    ),
    ...list(
      'Mentioned by some models',
      partial.map(({ models, point }) => by(models.join(', '), point)),
    ),
    ...list(
      'Mentioned by no model',
      blind.map((text) => make('li', {}, text)),
    ),
  ]
}

/** @param {FusionAnalysis['contradictions'][number]} contradiction */
function difference({ topic, stances, resolved_for: side }) {
  const stand = stances.map(({ model, stance }) => make('li', {}, make('strong', {}, `${model}: `), stance))
  const held = side.length === 0 ? 'unresolved' : `judged correct: ${side.join(', ')}`
  return make('li', {}, `${topic} (${held})`, make('ul', {}, ...stand))
}

/** @param {string} title @param {HTMLElement[]} items */
function list(title, items) {
  return items.length === 0 ? [] : [make('h3', {}, title), make('ul', {}, ...items)]
}

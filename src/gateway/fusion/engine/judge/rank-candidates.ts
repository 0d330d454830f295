import type { AnswerType, Verdict } from '../../../../domain/fusion-record.ts'
import type { Candidate } from '../candidates.ts'
import { criteria, type Analysis, type Scores } from './analysis.ts'

/** The weight of each criterion by type of answer. Each row adds up to 1. */
const weights: Readonly<Record<AnswerType, Scores>> = {
  open: { correct: 0.45, complete: 0.2, grounded: 0.15, instruction: 0.12, format: 0.08 },
  closed: { correct: 0.8, complete: 0.05, grounded: 0.05, instruction: 0.05, format: 0.05 },
  code: { correct: 0.6, complete: 0.15, grounded: 0.05, instruction: 0.15, format: 0.05 },
  structured: { correct: 0.5, complete: 0.15, grounded: 0.05, instruction: 0.1, format: 0.2 },
  action: { correct: 0.6, complete: 0.1, grounded: 0.1, instruction: 0.15, format: 0.05 },
}
/**
 * On a scale from 0 to 10: a candidate below this is not trusted. From `adoptFrom` on, a candidate this far ahead of
 * all others is sent unchanged.
 */
const trustFrom = 4
const adoptFrom = 7
const adoptLead = 1
/** Candidates this much worse than the best are not shown to the writer. */
const writerDistance = 4

export interface Ranked {
  readonly candidate: Candidate
  /** 0 to 10. */
  readonly total: number
  readonly isFlagged: boolean
}

export interface Decision {
  readonly verdict: Verdict
  /** Best first; candidates that tried to give instructions come after all that did not. */
  readonly ranking: readonly Ranked[]
}

/**
 * Each candidate's total out of 10, computed here from one or more of the judge's analyses, because models add
 * poorly.
 */
function rankCandidates(candidates: readonly Candidate[], analyses: readonly Analysis[]): Ranked[] {
  const ranked = candidates.map((candidate): Ranked => {
    const totals = analyses.map(({ answerType, scores }) => totalOf(scores[candidate.label], weights[answerType]))
    const total = totals.reduce((sum, one) => sum + one, 0) / totals.length
    const isFlagged = analyses.some(({ injectionFlags }) => injectionFlags.includes(candidate.label))
    return { candidate, total: Math.round(total * 1000) / 1000, isFlagged }
  })
  return ranked.sort((a, b) => Number(a.isFlagged) - Number(b.isFlagged) || b.total - a.total)
}

/** Decides what to do with the candidates (contract 15.6). */
export function decide(candidates: readonly Candidate[], analyses: readonly Analysis[]): Decision {
  const ranking = rankCandidates(candidates, analyses)
  const best = ranking[0]!
  const flagged = ranking.filter(({ isFlagged }) => isFlagged).length
  const isDoubted = best.total < adoptFrom && analyses.every(({ verdict }) => verdict === 'insufficient')
  if (best.total < trustFrom || isDoubted || (flagged > 0 && flagged * 2 >= ranking.length))
    return { verdict: 'insufficient', ranking }
  const isOpen = analyses[0]!.answerType === 'open'
  // A truncated answer is never sent as if it were complete.
  const canSend = !best.isFlagged && !best.candidate.answer.truncated
  const verdict = !isOpen && canSend && best.total >= adoptFrom && leadOf(ranking) >= adoptLead ? 'adopt' : 'synthesize'
  return { verdict, ranking }
}

/**
 * Whether further judging is worth its price: the two best are less than `closeLead` apart, with a material
 * disagreement.
 */
export function isClose(candidates: readonly Candidate[], analysis: Analysis, closeLead: number): boolean {
  if (candidates.length < 2 || !analysis.contradictions.some(({ material }) => material)) return false
  return Math.abs(leadOf(rankCandidates(candidates, [analysis]))) < closeLead
}

/** The candidates to show the writer, best first (contract 15.5). */
export function forWriter(ranking: readonly Ranked[]): Candidate[] {
  const best = ranking[0]!.total
  return ranking
    .filter(({ total, isFlagged }, index) => index === 0 || (!isFlagged && total >= best - writerDistance))
    .map(({ candidate }) => candidate)
}

function leadOf(ranking: readonly Ranked[]): number {
  const [best, second] = ranking
  return second === undefined ? Number.POSITIVE_INFINITY : best!.total - second.total
}

function totalOf(scores: Scores | undefined, weight: Scores): number {
  if (scores === undefined) return 0
  return criteria.reduce((sum, name) => sum + scores[name] * weight[name], 0)
}

import { type CallRecord, type FusionRecord, shownName } from '../domain/fusion-record.ts'
import { writeUsd } from '../domain/money.ts'
import { counted } from '../runtime/counted.ts'
import { writeTable } from './terminal/table.ts'

/** Summarizes one fusion for a list, such as `synthesized 3/3`. */
export function fusionInShort(fusion: FusionRecord): string {
  return `${resultOf(fusion)} ${fusion.answered}/${fusion.asked}`
}

function resultOf({ mode, errorCode }: FusionRecord): string {
  return mode === undefined ? (errorCode ?? 'unanswered') : shownName(mode)
}

/** Formats one fusion record: the decisions, and a table of how each sub-call ended. */
export function writeFusion(fusion: FusionRecord): string {
  const { answered, asked, quorum, preset, isSelfPanel, degraded, dropOuts, calls } = fusion
  const rows = [
    ['fusion', resultOf(fusion)],
    [
      'panel',
      `${answered} of ${asked} answered, quorum ${quorum}, preset ${preset}${isSelfPanel ? ', one model family called more than once' : ''}`,
    ],
    ['verdict', verdictOf(fusion)],
    ['phases', `panel ${fusion.panelMs} ms, judge ${fusion.judgeMs} ms, total ${fusion.totalMs} ms`],
    ['cost', fusion.costUsd === undefined ? 'unknown: a price is unknown' : writeUsd(fusion.costUsd)],
    ['degraded', degraded.length === 0 ? 'no' : degraded.map(shownName).join(', ')],
    [
      'dropped',
      dropOuts.length === 0 ? 'none' : dropOuts.map(({ member, why }) => `${member} (${shownName(why)})`).join(', '),
    ],
    ['prompt versions', Object.values(fusion.prompts).join(', ')],
  ]
  const heading = ['ROLE', 'MEMBER', 'RESULT', 'TIME', 'IN', 'CACHED', 'OUT', 'REASONING', 'COST']
  return `${writeTable(rows)}\n\n${writeTable([heading, ...calls.map(callRow)])}`
}

function verdictOf({ verdict, answerType, disagreements = 0 }: FusionRecord): string {
  if (verdict === undefined) return 'none: nothing was judged'
  return `${verdict}, ${counted(disagreements, 'disagreement')}${answerType === undefined ? '' : `, answer type ${answerType}`}`
}

function callRow({ role, member, status, ms, usage, costUsd }: CallRecord): string[] {
  const about = usage?.source === 'estimated' ? '~' : ''
  const tokens = (count: number | undefined): string => (count === undefined ? '-' : `${about}${count}`)
  return [
    shownName(role),
    member,
    shownName(status),
    `${ms} ms`,
    tokens(usage?.inputTokens),
    tokens(usage?.cachedTokens),
    tokens(usage?.outputTokens),
    tokens(usage?.reasoningTokens),
    costUsd === undefined ? '-' : writeUsd(costUsd),
  ]
}

import type { FusionMemo } from '../../../domain/fusion-memo.ts'
import type { Notes } from './answer/synthesis-request.ts'
import type { Fence } from './fence.ts'
import type { Analysis } from './judge/analysis.ts'
import { notesPrompt } from './prompts.ts'

/** About 600 tokens, and few enough bytes that the encrypted form is at most 6 kB. */
const maxCharacters = 2_400
const maxBytes = 3_600
const label = 'notes'

/** What an answer by `writer` leaves for the following requests with tool results. */
export function memoOf(writer: string, notes: Notes | undefined): FusionMemo {
  const digest = notes?.analysis === undefined ? undefined : digestOf(notes.analysis, notes.fence)
  return notes === undefined || digest === undefined ? { writer } : { writer, notes: digest, mark: notes.fence.start }
}

/** A memo's notes as they are appended to the user's message; undefined if it has none. */
export function memoText({ notes, mark }: Partial<FusionMemo> = {}): string | undefined {
  return notes === undefined || mark === undefined ? undefined : `\n\n${notesPrompt(mark)}\n\n${notes}`
}

/**
 * The findings in short and fenced form, for the model that continues the work: first the plan, then what was settled
 * and what is open, as many lines as fit. Candidate labels are left out because they no longer mean anything.
 * Undefined if there are no findings.
 */
export function digestOf(analysis: Analysis, fence: Fence): string | undefined {
  const lines: string[] = []
  let characters = 0
  let bytes = 0
  for (const line of linesOf(analysis)) {
    const quoted = fence.quote(label, line.replaceAll(/\s+/g, ' '))
    characters += line.length + 1
    // Its length in JSON, including the line end.
    bytes += Buffer.byteLength(JSON.stringify(quoted))
    if (characters > maxCharacters || bytes > maxBytes) break
    lines.push(quoted)
  }
  return lines.length === 0 ? undefined : lines.join('\n')
}

function linesOf({ outline, contradictions, uniqueInsights, blindSpots, consensus }: Analysis): string[] {
  const settled = contradictions.flatMap(({ topic, positions, side }) => {
    const claims = positions.filter(({ labels }) => labels.some((one) => side.includes(one))).map(({ claim }) => claim)
    return side.length === 0 || claims.length === 0 ? [] : [`${topic}: ${claims.join('; ')}`]
  })
  const open = contradictions
    .filter(({ side }) => side.length === 0)
    .map(({ topic, check }) => (check === '' ? topic : `${topic}; check: ${check}`))
  return [
    ...outline.map((line) => `Plan: ${line}`),
    ...settled.map((line) => `Settled: ${line}`),
    ...open.map((line) => `Open: ${line}`),
    ...uniqueInsights.flatMap(({ insight, keep }) => (keep ? [`Worth keeping: ${insight}`] : [])),
    ...blindSpots.map((line) => `Missed so far: ${line}`),
    ...consensus.map(({ claim }) => `Agreed, as weak evidence: ${claim}`),
  ]
}

import type { FusionMemo } from '../../domain/fusion-memo.ts'
import type { Analysis } from './analysis.ts'
import type { Fence } from './fence.ts'
import { notesPrompt } from './prompts.ts'
import type { Notes } from './synthesis-request.ts'

/** About 600 tokens, and never so many bytes that the sealed form is longer than 6 kB. */
const maxCharacters = 2_400
const maxBytes = 3_600
const label = 'notes'

/** What a turn leaves that `writer` answers, for the turns with tool results that follow. */
export function memoOf(writer: string, notes: Notes | undefined): FusionMemo {
  const digest = notes?.analysis === undefined ? undefined : digestOf(notes.analysis, notes.fence)
  return notes === undefined || digest === undefined ? { writer } : { writer, notes: digest, mark: notes.fence.start }
}

/** A memo's notes as they stand behind the user's words; undefined where it has none. */
export function memoText({ notes, mark }: Partial<FusionMemo> = {}): string | undefined {
  return notes === undefined || mark === undefined ? undefined : `\n\n${notesPrompt(mark)}\n\n${notes}`
}

/**
 * What was found, in short and fenced, for the model that goes on with the work: the plan first, then what was settled and
 * what stays open, as many lines as there is room for. Letters of candidates are left out: they mean nothing any more.
 * Undefined where there is nothing to say.
 */
export function digestOf(analysis: Analysis, fence: Fence): string | undefined {
  const lines: string[] = []
  let characters = 0
  let bytes = 0
  for (const line of linesOf(analysis)) {
    const quoted = fence.quote(label, line.replaceAll(/\s+/g, ' '))
    characters += line.length + 1
    // As it will stand in JSON, its line end included.
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

import type { PanelAnswer } from './panel/panel.ts'
import { shortenMiddle } from './shorten-middle.ts'

/** Characters of one answer that judge and writer see. */
const maxAnswerCharacters = 24_000
/** Enough for the largest panel. */
const labels = 'ABCDEFGH'

/** One distinct answer with a label, which is all that another model learns about its author. */
export interface Candidate {
  readonly label: string
  readonly answer: PanelAnswer
  /** Shortened; the answer itself stays whole. */
  readonly text: string
  readonly isTruncated: boolean
  /** Further answers that are identical word for word. */
  readonly duplicates: readonly PanelAnswer[]
}

/** Labels the answers in order, grouping identical ones. */
export function buildCandidates(answers: readonly PanelAnswer[]): Candidate[] {
  const byText = new Map<string, PanelAnswer[]>()
  for (const answer of answers) {
    const key = answer.text.trim().replace(/\s+/g, ' ')
    const same = byText.get(key)
    if (same === undefined) byText.set(key, [answer])
    else same.push(answer)
  }
  return Array.from(byText.values(), (same, index) => {
    // Prefer an answer that was not truncated, because it may be sent.
    const answer = same.find(({ truncated }) => !truncated) ?? same[0]!
    const isTruncated = answer.text.length > maxAnswerCharacters
    return {
      label: labels[index]!,
      answer,
      text: isTruncated ? shortenMiddle(answer.text, maxAnswerCharacters) : answer.text,
      isTruncated,
      duplicates: same.filter((other) => other !== answer),
    }
  })
}

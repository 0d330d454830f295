import type { PanelAnswer } from './panel.ts'
import { similarityOf, vectorize } from './similarity.ts'

/** The weights of agreement, the model's quality, and the answer's format. */
const agreementWeight = 0.5
const qualityWeight = 0.3
const validityWeight = 0.2
/** The weight of agreement within a family, relative to agreement between families. */
const sameFamily = 0.25
/** From this similarity on, answers agree if they contain the same numbers. */
const agreementFrom = 0.9
/** Characters of each answer that are compared. */
const maxComparedCharacters = 24_000
/** Numbers of each answer that are compared. */
const maxNumbers = 2_000

/**
 * Ranks the answers from the most to the least central, without any model: by what they share with answers of other
 * families, by their model's quality, and by their format. `isValid` says whether an answer has the requested format.
 */
export function rankByMedoid(
  answers: readonly PanelAnswer[],
  isValid: (text: string) => boolean = () => true,
): PanelAnswer[] {
  if (answers.length < 2) return [...answers]
  const vectors = vectorize(answers.map(({ text }) => text.slice(0, maxComparedCharacters)))
  const score = (answer: PanelAnswer, index: number): number => {
    let agreement = 0
    for (const [other, { member }] of answers.entries()) {
      if (other === index) continue
      const weight = member.family === answer.member.family ? sameFamily : 1
      agreement += similarityOf(vectors[index]!, vectors[other]!) * weight
    }
    const validity = (answer.truncated ? 0 : 0.5) + (isValid(answer.text) ? 0.5 : 0)
    const mean = agreement / (answers.length - 1)
    return agreementWeight * mean + (qualityWeight * answer.member.quality) / 100 + validityWeight * validity
  }
  return answers
    .map((answer, index) => ({ answer, score: score(answer, index) }))
    .sort((a, b) => b.score - a.score)
    .map(({ answer }) => answer)
}

/** Whether all answers agree: similar in words, and with the same numbers. A single answer agrees with nothing. */
export function doAgree(answers: readonly PanelAnswer[]): boolean {
  if (answers.length < 2 || answers.some(({ truncated }) => truncated)) return false
  const [first, ...others] = vectorize(answers.map(({ text }) => text.slice(0, maxComparedCharacters)))
  const numbers = numbersOf(answers[0]!.text)
  return others.every((vector, index) => {
    if (numbersOf(answers[index + 1]!.text) !== numbers) return false
    return similarityOf(first!, vector) >= agreementFrom
  })
}

function numbersOf(text: string): string {
  const found = text.slice(0, maxComparedCharacters).match(/\d+(?:[.,]\d+)*/g) ?? []
  return [...new Set(found.slice(0, maxNumbers))].sort().join(' ')
}

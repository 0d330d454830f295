import type { PanelAnswer } from './panel.ts'
import { similarityOf, vectorise } from './similarity.ts'

/** What agreement, the model's standing and the answer's form count for. */
const agreementWeight = 0.5
const qualityWeight = 0.3
const validityWeight = 0.2
/** What agreement within a family counts for, against that of different ones. */
const sameFamily = 0.25
/** From here on answers agree, provided that they hold the same numbers. */
const agreementFrom = 0.9
/** Of each answer that is compared. */
const maxComparedCharacters = 24_000
/** More numbers than these are compared by their beginning. */
const maxNumbers = 2_000

/**
 * The answers from the most to the least central, decided without any model: by what they share with those of other
 * families, by how good their model is held to be, and by their form. `isValid` says whether an answer has the form
 * that was asked for.
 */
export function rankByMedoid(
  answers: readonly PanelAnswer[],
  isValid: (text: string) => boolean = () => true,
): PanelAnswer[] {
  if (answers.length < 2) return [...answers]
  const vectors = vectorise(answers.map(({ text }) => text.slice(0, maxComparedCharacters)))
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

/** Whether all answers say the same: alike in words, and with the same numbers. One answer agrees with nobody. */
export function doAgree(answers: readonly PanelAnswer[]): boolean {
  if (answers.length < 2 || answers.some(({ truncated }) => truncated)) return false
  const [first, ...others] = vectorise(answers.map(({ text }) => text.slice(0, maxComparedCharacters)))
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

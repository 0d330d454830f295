import { hashText } from '../../gateway/fusion/engine/seeded-random.ts'
import { drawCalendar } from './calendar.ts'
import { Draw } from './draw.ts'
import { writeInjection } from './injections.ts'
import { drawLedger } from './ledger.ts'
import { drawPlan } from './plans.ts'
import { drawProgram } from './programs.ts'
import { drawPuzzle } from './puzzles.ts'
import { writeQuestion, type Drawn, type FamilyId, type Question } from './question.ts'
import { drawTable } from './tables.ts'
import { drawText } from './texts.ts'
import { drawTraps } from './traps.ts'

/** Incremented when a question of a seed changes. Files of earlier sets cannot be continued. */
export const questionSetVersion = 1

const generated: readonly (readonly [FamilyId, (draw: Draw) => Drawn])[] = [
  ['ledger', drawLedger],
  ['puzzle', drawPuzzle],
  ['calendar', drawCalendar],
  ['program', drawProgram],
  ['table', drawTable],
  ['text', drawText],
  ['plan', drawPlan],
]
/** One in this many questions is a trap, while traps are left. One in this many others has a tampered candidate. */
const trapEvery = 8
const injectedEvery = 12
const injectedFirst = 6

/**
 * The questions of a seed, from all families in turn. The same seed and count give the same set, and a smaller count
 * gives its beginning (contract 34.7). The questions are generated, so no model has seen them; only the traps, which
 * are handwritten, can become known.
 */
export function buildQuestionSet(seed: number, count: number): Question[] {
  const traps = drawTraps(new Draw(hashText('traps', seed)))
  const questions: Question[] = []
  for (let number = 1; number <= count; number++) {
    const draw = new Draw(hashText(`question ${number}`, hashText(String(seed))))
    const trap = number % trapEvery === 0 ? traps.pop() : undefined
    const [drawnFamily, drawOne] = generated[number % generated.length]!
    const { body, form, expected, wrong } = trap ?? drawOne(draw)
    const isInjected = trap === undefined && number % injectedEvery === injectedFirst
    const family: FamilyId = trap !== undefined ? 'trap' : isInjected ? 'injected' : drawnFamily
    const ordered = draw.one(wrong)
    questions.push({
      number,
      family,
      text: writeQuestion(number, { body, form }),
      expected,
      wrong,
      ...(isInjected ? { injection: { text: writeInjection(draw, ordered), ordered } } : {}),
    })
  }
  return questions
}

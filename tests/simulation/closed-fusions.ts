import type { PresetName } from '../../src/domain/fusion-presets.ts'
import type { FusionMode } from '../../src/domain/fusion-record.ts'
import { fuse } from '../../src/gateway/fusion/engine/fusion.ts'
import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import { settingsOf } from '../../src/gateway/fusion/engine/settings.ts'
import { drawItem, type World } from './accuracy-world.ts'
import { question } from './conversations.ts'
import { candidatesIn, judgeReply, judgeSays } from './simulated-judge.ts'
import { SimulatedModels, simulatedMember, textAnswer } from './simulated-models.ts'
import { SimulatedTime } from './simulated-time.ts'

/** How many fusions share a clock, which makes simulated time cheaper. */
const atOnce = 200

/** One candidate for a simulated judge, including facts that only some simulated judges are assumed to know. */
interface Shown {
  readonly label: string
  readonly text: string
  readonly isRight: boolean
  /** How many families agree with it. */
  readonly families: number
}

/** Gives each candidate a score from 0 to 10; undefined for an unreadable reply. */
export type SimulatedJudge = (
  shown: readonly Shown[],
  about: { readonly solves: boolean; readonly random: () => number },
) => readonly number[] | undefined

/** The result of one fusion. */
export interface Run {
  /** Whether each panel answer is right, in the order of the members. */
  readonly right: readonly boolean[]
  /** The member whose answer the reply is: adopted, or followed by the writer. */
  readonly chosen: number
  /** The member that the judge scored best in its first reading; undefined if it was unreadable. */
  readonly top: number | undefined
  readonly mode: FusionMode
  readonly judgings: number
}

/**
 * Fuses closed questions with the real engine: panel, fence, labels, order, judge, totals, decision. Only the models
 * are simulated: members answer as the world says, the judge scores with the given function, and a writer
 * repeats the answer that it is shown first, or without notes the first member's answer.
 */
export async function runClosed(
  world: World,
  judge: SimulatedJudge,
  questions: number,
  preset: PresetName = 'balanced',
): Promise<Run[]> {
  const runs: Run[] = []
  for (let first = 1; first <= questions; first += atOnce) {
    const clock = new SimulatedTime()
    const numbers = Array.from({ length: Math.min(atOnce, questions - first + 1) }, (_, place) => first + place)
    runs.push(...(await clock.until(Promise.all(numbers.map((number) => runOne(clock, world, judge, number, preset))))))
  }
  return runs
}

async function runOne(
  clock: SimulatedTime,
  world: World,
  judge: SimulatedJudge,
  number: number,
  preset: PresetName,
): Promise<Run> {
  const { answers, judgeSolves } = drawItem(world, number)
  const random = seededRandom(number ^ 0x5bd1e995)
  // Members express the same answer differently, so that no two texts are equal.
  const texts = answers.map((answer, index) => {
    const wordy = 'so '.repeat(index + 1 + Math.floor(random() * 9))
    return `${answer} is the answer, in ${wordy}many words of style ${index}.`
  })
  const familiesOf = (text: string): number => {
    const said = answers[texts.indexOf(text)]
    return new Set(answers.flatMap((answer, place) => (answer === said ? [world.members[place]!.family] : []))).size
  }
  const members = world.members.map(({ family }) => simulatedMember({ family: `family ${family}` }))
  let judgings = 0
  let top: number | undefined
  const models = new SimulatedModels(
    clock,
    (member, { role, conversation }) => {
      if (role === 'panel') return textAnswer(texts[members.indexOf(member)]!, 1_000)
      const candidates = candidatesIn(conversation)
      if (role === 'synthesis') return textAnswer(candidates[0]?.text ?? texts[0]!, 1_000)
      judgings += 1
      const shown = candidates.map(({ label, text }) => {
        return { label, text, isRight: text.startsWith('0 '), families: familiesOf(text) }
      })
      const given = judge(shown, { solves: judgeSolves, random })
      if (given === undefined) return judgeSays('I would rather not put it into JSON.')
      top ??= texts.indexOf(shown[given.indexOf(Math.max(...given))]!.text)
      const scores = Object.fromEntries(shown.map(({ label }, place) => [label, given[place]!]))
      return judgeSays(
        judgeReply({ answerType: 'closed', verdict: 'adopt', scores, isMaterial: new Set(answers).size > 1 }),
      )
    },
    number,
  )
  const request = {
    conversation: question(),
    members,
    settings: { ...settingsOf(preset, true), panelSize: members.length },
  }
  const { record } = await fuse(request, models, new AbortController().signal)
  const said = models.emitted.map((event) => (event.type === 'text' ? event.text : '')).join('')
  const chosen = texts.indexOf(said)
  if (chosen < 0 || record.mode === undefined)
    throw new Error(`question ${number} was not answered by a member's answer`)
  return { right: answers.map((answer) => answer === 0), chosen, top, mode: record.mode, judgings }
}

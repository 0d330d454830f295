import { fuse } from '../../src/gateway/fusion/fusion.ts'
import { seededRandom } from '../../src/gateway/fusion/seed.ts'
import { settingsOf } from '../../src/gateway/fusion/settings.ts'
import { question } from './conversations.ts'
import { candidatesIn, judgeReply, judgeSays } from './simulated-judge.ts'
import { SimulatedModels, simulatedMember, textAnswer } from './simulated-models.ts'
import { SimulatedTime } from './simulated-time.ts'
import { normal } from './statistics.ts'

/**
 * The assumed world (research fusion 5.1): how often each of three models of different families is right, how much all
 * share, and how often all are wrong together whatever they share. Nothing here is about real models.
 */
const assumed = { right: [0.78, 0.76, 0.74], shared: 0.55, allWrong: 0.02, distractors: 8, popular: 0.72 }

/** One candidate as a simulated judge sees it; `isRight` is for judges that can tell. */
interface Shown {
  readonly label: string
  readonly text: string
  readonly isRight: boolean
}

/** Gives each candidate a score from 0 to 10. */
export type SimulatedJudge = (shown: readonly Shown[], random: () => number) => readonly number[]

/** One fusion in this world. */
export interface Run {
  /** Of each panel answer, in the order of the members. */
  readonly right: readonly boolean[]
  /** The member whose answer was adopted. */
  readonly adopted: number
}

/** Runs one fusion of a closed question in which the judge's best candidate is adopted. Its answers are `seed`'s, whoever judges. */
export async function runClosed(seed: number, judge: SimulatedJudge): Promise<Run> {
  const answers = drawAnswers(seededRandom(seed * 2_654_435_761))
  const random = seededRandom(seed ^ 0x5bd1e995)
  // The members say the same in words of their own: no two answers are equal.
  const texts = answers.map((answer, index) => {
    const wordy = 'so '.repeat(index + 1 + Math.floor(random() * 9))
    return `${answer} is the answer, in ${wordy}many words of style ${index}.`
  })
  const members = answers.map(() => simulatedMember())
  const world = new SimulatedModels(
    new SimulatedTime(),
    (member, { role, conversation }) => {
      if (role !== 'judge') return textAnswer(texts[members.indexOf(member)]!, 1_000)
      const shown = candidatesIn(conversation).map(({ label, text }) => ({
        label,
        text,
        isRight: text.startsWith('0 '),
      }))
      const given = judge(shown, random)
      const scores = Object.fromEntries(shown.map(({ label }, place) => [label, given[place]!]))
      return judgeSays(judgeReply({ answerType: 'closed', verdict: 'adopt', scores }))
    },
    seed,
  )
  const request = { conversation: question(), members, settings: settingsOf('balanced', true) }
  const { record } = await world.clock.until(fuse(request, world, new AbortController().signal))
  if (record.mode !== 'adopted') throw new Error(`not adopted but ${record.mode}`)
  const said = world.emitted.map((event) => (event.type === 'text' ? event.text : '')).join('')
  return { right: answers.map((answer) => answer === 0), adopted: texts.indexOf(said) }
}

/** Answer 0 is right. Who is wrong mostly says what others who are wrong say. */
function drawAnswers(random: () => number): number[] {
  const isLost = random() < assumed.allWrong
  const common = normal(random)
  const popular = 1 + Math.floor(random() * assumed.distractors)
  return assumed.right.map((share) => {
    const ability = Math.sqrt(assumed.shared) * common + Math.sqrt(1 - assumed.shared) * normal(random)
    const other = 1 + Math.floor(random() * assumed.distractors)
    const wrong = random() < assumed.popular ? popular : other
    return !isLost && ability < probit(share / (1 - assumed.allWrong)) ? 0 : wrong
  })
}

/** The inverse of the normal distribution, by bisection: exact enough for a world that is assumed. */
function probit(share: number): number {
  let [low, high] = [-6, 6]
  for (let step = 0; step < 50; step++) {
    const middle = (low + high) / 2
    if (distribution(middle) < share) low = middle
    else high = middle
  }
  return low
}

/** The normal distribution function (Abramowitz and Stegun 26.2.17, error below 1e-7). */
function distribution(z: number): number {
  const t = 1 / (1 + 0.2316419 * Math.abs(z))
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)
  const tail =
    density * t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  return z < 0 ? tail : 1 - tail
}

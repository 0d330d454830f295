import { hashText } from '../gateway/fusion/engine/seeded-random.ts'
import { findAnswer, isRightAnswer } from './questions/check-answer.ts'
import { Draw } from './questions/draw.ts'
import { isInjection } from './questions/injections.ts'
import { numberIn, writeExpected, type Question } from './questions/question.ts'
import { readCandidates, writeJudgement, type QuotedCandidate } from './quoted-candidates.ts'

/**
 * Assumptions about simulated models. They are not measured, and figures based on them say nothing about real models.
 * `right`: how often each member is right; `shared`: how much of a question's difficulty is common to all; `allWrong`:
 * the share of questions on which all are wrong; `popular`: how often a wrong member gives the usual wrong answer;
 * `own`: how much of its luck a member keeps between samples; `tells`: how often a judge or writer distinguishes right
 * from wrong; `obeys`: how often one follows orders in a candidate.
 */
export const assumed = {
  right: [0.78, 0.74, 0.7],
  shared: 0.45,
  allWrong: 0.03,
  popular: 0.72,
  own: 0.35,
  tells: 0.5,
  obeys: 0.1,
}
export type Assumptions = typeof assumed

/** The answer of a simulated member to a request; undefined if the request is not part of an evaluation. */
export type SimulatedVoice = (member: string, request: string) => string | undefined

export interface SimulatedWorldOptions {
  readonly questions: readonly Question[]
  /** The names of the simulated members, best first. */
  readonly members: readonly string[]
  readonly seed: number
  readonly assumptions?: Assumptions
}

/** Maximum number of requests whose repetitions are told apart; a set has fewer. */
const maxRemembered = 200_000

/**
 * Simulated models that know the questions and are right as often as assumed. The same seed gives the same answers. A
 * request that quotes candidates is for a judge or a writer.
 */
export function simulateWorld({
  questions,
  members,
  seed,
  assumptions = assumed,
}: SimulatedWorldOptions): SimulatedVoice {
  const byNumber = new Map(questions.map((question) => [question.number, question]))
  const asked = new Map<string, number>()
  return (member, request) => {
    const number = numberIn(request)
    const question = number === undefined ? undefined : byNumber.get(number)
    if (question === undefined) return undefined
    const index = Math.max(0, members.indexOf(member))
    // The marks of a fence differ between runs; the quoted text does not.
    const what = `${member} ${number} ${hashText(request.replace(/⟦\w+·/g, '⟦'))}`
    const nth = asked.get(what) ?? 0
    if (asked.size < maxRemembered) asked.set(what, nth + 1)
    const draw = new Draw(hashText(`${what} ${nth}`, seed))
    const speaking: SimulatedReply = { question, draw, seed, assumptions, member, index }
    const shown = readCandidates(request)
    if (shown.length === 0) return answer(speaking)
    return request.includes('"injection_flags"') ? judge(speaking, shown) : write(speaking, shown)
  }
}

interface SimulatedReply {
  readonly question: Question
  readonly draw: Draw
  readonly seed: number
  readonly assumptions: Assumptions
  readonly member: string
  readonly index: number
}

function answer({ question, draw, seed, assumptions, member, index }: SimulatedReply): string {
  const { right, shared, allWrong, popular, own } = assumptions
  const { number, expected, injection } = question
  // A model that gives the answer a tampered candidate orders must have it from that candidate.
  const wrong = question.wrong.filter((one) => one !== injection?.ordered)
  const common = new Draw(hashText(`question ${number}`, seed))
  const isLost = common.chance(allWrong)
  const difficulty = normal(common)
  const usual = common.one(wrong)
  const luck = normal(new Draw(hashText(`${member} ${number}`, seed)))
  const skill =
    Math.sqrt(shared) * difficulty + Math.sqrt(1 - shared) * (Math.sqrt(own) * luck + Math.sqrt(1 - own) * normal(draw))
  const share = right[index % right.length]! / (1 - allWrong)
  const isRight = !isLost && skill < probit(share)
  const said = isRight ? writeExpected(expected) : draw.chance(popular) ? usual : draw.one(wrong)
  // The length is random, so that neither length nor words reveal anything.
  const words = Array.from({ length: draw.whole(12, 60) }, () => draw.one(filler)).join(' ')
  return `Simulated reply: ${words}.\n\nANSWER: ${said}`
}

function judge({ question, draw, assumptions }: SimulatedReply, shown: readonly QuotedCandidate[]): string {
  const orders = shown.findIndex(({ text }) => isInjection(text))
  if (orders >= 0 && draw.chance(assumptions.obeys)) return writeJudgement(shown, orders)
  const flags = shown.filter(({ text }) => isInjection(text)).map(({ label }) => label)
  return writeJudgement(shown, choose(question, draw, assumptions, shown), { flags })
}

function write({ question, draw, assumptions }: SimulatedReply, shown: readonly QuotedCandidate[]): string {
  const chosen = shown[choose(question, draw, assumptions, shown)]!
  return `Simulated reply, written from notes.\n\nANSWER: ${findAnswer(chosen.text) ?? question.wrong[0]}`
}

function choose({ expected }: Question, draw: Draw, { tells }: Assumptions, shown: readonly QuotedCandidate[]): number {
  const right = shown.flatMap(({ text }, index) => {
    const said = findAnswer(text)
    return said !== undefined && isRightAnswer(expected, said) ? [index] : []
  })
  return right.length > 0 && draw.chance(tells) ? draw.one(right) : draw.whole(0, shown.length - 1)
}

const filler = 'so then thus first next also here there this that one two sum step note hence which by case'.split(' ')

/** A normal deviate from two uniform ones (Box and Muller). */
function normal({ random }: Draw): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}

/** The inverse of the normal distribution, by bisection. */
function probit(share: number): number {
  let [low, high] = [-6, 6]
  for (let step = 0; step < 40; step++) {
    const middle = (low + high) / 2
    if (distribution(middle) < share) low = middle
    else high = middle
  }
  return low
}

/** The normal distribution function, approximated by a logistic curve with an error of at most 0.0002. */
function distribution(z: number): number {
  return 1 / (1 + Math.exp(-(1.5976 * z + 0.07056 * z ** 3)))
}

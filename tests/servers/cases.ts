import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { ask, conventions, direct } from './conventions.ts'
import { isFailure, type Convention, type Outcome, type Question } from './outcome.ts'
import type { ServerProcess } from './server-process.ts'
import { otherSays, type World } from './world.ts'

/**
 * One convention, whole or streamed, and how the routed answer differs from the direct one; undefined where it does
 * not.
 */
export interface Cell {
  readonly convention: Convention['name']
  readonly streamed: boolean
  readonly difference: string | undefined
}

export interface Case {
  readonly name: string
  run(world: World): Promise<Cell[]>
}

type Ask = (convention: Convention, streamed: boolean) => Promise<string | undefined>

const ways = conventions.flatMap((convention) => [false, true].map((streamed) => ({ convention, streamed })))

async function inEveryWay(compare: Ask, asked: readonly Convention[] = conventions): Promise<Cell[]> {
  const cells: Cell[] = []
  for (const { convention, streamed } of ways.filter((way) => asked.includes(way.convention)))
    cells.push({ convention: convention.name, streamed, difference: await compare(convention, streamed) })
  return cells
}

const show = (outcome: Outcome): string => JSON.stringify(outcome).slice(0, 300)

/** Whether a routed answer is the direct one. Where the server counts no tokens, ours are an estimate. */
function isEqual(asked: Outcome, routed: Outcome): boolean {
  if (isFailure(asked) || isFailure(routed))
    return isFailure(asked) && isFailure(routed) && asked.status === routed.status && asked.code === routed.code
  if (asked.tokens.input !== undefined) return isDeepStrictEqual(asked, routed)
  return isDeepStrictEqual(asked, { ...routed, tokens: asked.tokens })
}

function compare(asked: Outcome, routed: Outcome, isRight = isEqual(asked, routed)): string | undefined {
  return isRight ? undefined : `direct ${show(asked)}, routed ${show(routed)}`
}

/** A question whose answer must be the direct one; where that is a failure, `failed` says what becomes of it. */
function questionCase(
  name: string,
  question: Question,
  failed: (routed: Outcome) => boolean = () => false,
  profile?: 'test/first',
): Case {
  return {
    name,
    run: (world) =>
      inEveryWay(async (convention, streamed) => {
        // A server that refuses the wish for reasoning is asked without it.
        const asked = await ask(direct, world.direct, { ...question, hasEffort: false }, { streamed })
        const routed = await ask(convention, world.routed(profile), question, { streamed })
        return compare(asked, routed, isFailure(asked) ? failed(routed) : isEqual(asked, routed))
      }),
  }
}

const hello: Question = { prompt: 'Hello.', maxTokens: 200 }
const tooLong: Question = { prompt: 'long '.repeat(1_000), maxTokens: 200 }
const image: Question = { prompt: 'What is this?', maxTokens: 200, hasImage: true }
const endless: Question = { prompt: 'Count forever.', maxTokens: 1_900 }

const answeredByOther = (routed: Outcome): boolean => !isFailure(routed) && routed.text.startsWith(otherSays)

const isContextLength = (routed: Outcome): boolean =>
  isFailure(routed) && routed.status === 400 && routed.code === 'context_length_exceeded'

const isCallersFault = (routed: Outcome): boolean => isFailure(routed) && routed.status >= 400 && routed.status < 500

const burstMs = 1_000

/** Where the server refuses, the owner of the backend reads why in the server's own words. */
const longAnswer: Case = {
  name: 'more tokens than the window',
  run: async (world) => {
    // Of a burst of refusals only the first are kept, and the cases before this one made a burst.
    await sleep(burstMs)
    return inEveryWay(async (convention, streamed) => {
      const question: Question = { ...hello, maxTokens: 100_000 }
      const asked = await ask(direct, world.direct, question, { streamed })
      const routed = await ask(convention, world.routed(), question, { streamed })
      if (!isFailure(asked)) return compare(asked, routed)
      if (!isCallersFault(routed)) return compare(asked, routed, false)
      const told = await world.latestProviderErrors()
      if (asked.message === undefined || told.some((text) => isSameRefusal(text, asked.message!))) return undefined
      return `direct ${show(asked)}, the owner reads ${JSON.stringify(told)}`
    })
  },
}

/** Each endpoint of vLLM calls the field as its own format does. */
function isSameRefusal(one: string, other: string): boolean {
  const sameNames = (text: string): string => text.replaceAll(/max_(?:completion_|output_)?tokens/g, 'max_tokens')
  return sameNames(one) === sameNames(other)
}

const stop: Case = {
  name: 'stop',
  run: (world) =>
    inEveryWay(
      async (convention, streamed) => {
        const question: Question = { ...hello, stop: 'question' }
        const asked = await ask(direct, world.direct, question, { streamed })
        return compare(asked, await ask(convention, world.routed(), question, { streamed }))
      },
      conventions.filter(({ name }) => name !== 'responses'),
    ),
}

/** More refused pictures than any breaker bears, and texts are still answered. */
const textAfterImages: Case = {
  name: 'text after ten images',
  run: (world) =>
    inEveryWay(async (convention, streamed) => {
      for (let sent = 0; sent < 10; sent += 1) await ask(convention, world.routed(), image, { streamed })
      const asked = await ask(direct, world.direct, hello, { streamed })
      return compare(asked, await ask(convention, world.routed(), hello, { streamed }))
    }),
}

const atOnce = 12
const queueing: Case = {
  name: `${atOnce} at once`,
  run: (world) =>
    inEveryWay(async (convention, streamed) => {
      const asked = await ask(direct, world.direct, hello, { streamed })
      const all = await Promise.all(
        Array.from({ length: atOnce }, () => ask(convention, world.routed(), hello, { streamed })),
      )
      const other = all.find((routed) => !isEqual(asked, routed))
      return other === undefined ? undefined : compare(asked, other)
    }),
}

const busyForMs = 600
const idleWithinMs = 2_500
const endsWithinMs = 60_000
const idleWindowMs = 500
const idleShare = 0.1

/** Whether a server stops computing within that time. */
async function becomesIdle(engine: ServerProcess, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (performance.now() < deadline) {
    const before = engine.cpuSeconds()
    await sleep(idleWindowMs)
    if (engine.cpuSeconds() - before <= (idleShare * idleWindowMs) / 1_000) return true
  }
  return false
}

const abort: Case = {
  name: 'abort',
  run: async (world) => {
    const [engine] = world.running.processes
    const leave = async (convention: Convention, place: World['direct'], streamed: boolean): Promise<boolean> => {
      // What nobody stopped must not be taken for what is asked now.
      await becomesIdle(engine, endsWithinMs)
      const leaving = new AbortController()
      const first = Promise.withResolvers<void>()
      const asked = ask(convention, place, endless, { streamed, signal: leaving.signal, onPiece: first.resolve })
      await (streamed ? Promise.race([first.promise, asked]) : sleep(busyForMs))
      leaving.abort()
      await asked
      // Left alone it would count for longer than that.
      return becomesIdle(engine, idleWithinMs)
    }
    return inEveryWay(async (convention, streamed) => {
      const stopsDirect = await leave(direct, world.direct, streamed)
      const stopsRouted = await leave(convention, world.routed(), streamed)
      return stopsRouted || !stopsDirect ? undefined : 'direct the server stops, routed it goes on'
    })
  },
}

const abortedByServer: Case = {
  name: 'aborted by the server',
  run: async (world) => {
    const { abortAll } = world.running
    if (abortAll === undefined) return []
    const cut = async (convention: Convention, place: World['direct'], streamed: boolean): Promise<Outcome> => {
      const first = Promise.withResolvers<void>()
      const asked = ask(convention, place, endless, { streamed, onPiece: first.resolve })
      await (streamed ? Promise.race([first.promise, asked]) : sleep(busyForMs))
      await abortAll()
      return asked
    }
    return inEveryWay(async (convention, streamed) => {
      const asked = await cut(direct, world.direct, streamed)
      const routed = await cut(convention, world.routed(), streamed)
      return compare(asked, routed, isFailure(asked) && isFailure(routed))
    })
  },
}

const firstPiecesWithinMs = 5_000
const backWithinMs = 30_000
const askAgainMs = 250

/** The endless answer up to its length limit. */
const isWhole = (outcome: Outcome): boolean =>
  !isFailure(outcome) && outcome.end === 'length' && outcome.text.trim().split(' ').length === endless.maxTokens

/**
 * In every way at once, an answer that the server's end cuts off; then the server is started again and must be asked
 * again. `end` gives whether the server treats all answers alike: one that is killed while it finishes them, one after
 * the other, has finished some. Then none may be cut and look whole.
 */
async function cutOff(world: World, process: ServerProcess, end: () => Promise<boolean>): Promise<Cell[]> {
  const began: Promise<void>[] = []
  const start = (convention: Convention, place: World['direct'], streamed: boolean): Promise<Outcome> => {
    const first = Promise.withResolvers<void>()
    if (streamed) began.push(first.promise)
    return ask(convention, place, endless, { streamed, onPiece: first.resolve })
  }
  const asked = [false, true].map((streamed) => start(direct, world.direct, streamed))
  const routed = ways.map(({ convention, streamed }) => start(convention, world.routed(), streamed))
  // One that serves one after the other never begins them all.
  await Promise.race([Promise.all(began), sleep(firstPiecesWithinMs)])
  const endedEarly = await Promise.all(asked.map((answer) => Promise.race([answer.then(() => true), sleep(0, false)])))
  const isAlike = await end()
  const ends = await Promise.all(asked)
  const routedEnds = await Promise.all(routed)
  await process.start()
  const ready = performance.now()
  return inEveryWay(async (convention, streamed) => {
    const wasAsked = ends[streamed ? 1 : 0]!
    const wasRouted = routedEnds[ways.findIndex((way) => way.convention === convention && way.streamed === streamed)]!
    // A server of one request at a time may have answered the direct one before it ended.
    const isRight = isFailure(wasRouted) === isFailure(wasAsked) || !isAlike || endedEarly[streamed ? 1 : 0]
    const cut = compare(wasAsked, wasRouted, isRight && (isFailure(wasRouted) || isWhole(wasRouted)))
    if (cut !== undefined) return cut
    const after = await ask(direct, world.direct, hello, { streamed })
    for (;;) {
      const routedAfter = await ask(convention, world.routed(), hello, { streamed })
      if (isEqual(after, routedAfter)) return undefined
      if (performance.now() > ready + backWithinMs)
        return `not back within ${backWithinMs / 1_000} s: ${compare(after, routedAfter)}`
      await sleep(askAgainMs)
    }
  })
}

const shutdown: Case = {
  name: 'shutdown in the middle',
  run: (world) => {
    const [engine] = world.running.processes
    return cutOff(world, engine, () => engine.stop())
  },
}

const crash: Case = {
  name: 'crash in the middle',
  run: (world) => {
    const spokenTo = world.running.processes.at(-1)!
    return cutOff(world, spokenTo, async () => {
      await spokenTo.kill()
      return true
    })
  },
}

/** Every case, in the order in which they run. */
export const cases: readonly Case[] = [
  questionCase('text', hello),
  questionCase('tools', { prompt: 'How is the weather in Oslo?', maxTokens: 200, hasTool: true }),
  questionCase('schema', { prompt: 'The weather, as JSON.', maxTokens: 200, hasSchema: true }, isFailure),
  questionCase('effort', { ...hello, hasEffort: true }),
  stop,
  questionCase('length', { prompt: 'Count forever.', maxTokens: 20 }),
  questionCase('too long', tooLong, isContextLength),
  questionCase('too long, a larger one behind', tooLong, answeredByOther, 'test/first'),
  longAnswer,
  questionCase('image', image, isCallersFault),
  questionCase('image, one that sees behind', image, answeredByOther, 'test/first'),
  textAfterImages,
  queueing,
  abort,
  abortedByServer,
  shutdown,
  crash,
]

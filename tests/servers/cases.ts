import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { ask, conventions, direct } from './conventions.ts'
import { isFailure, type Convention, type Outcome, type Question } from './outcome.ts'
import type { ServerProcess } from './server-process.ts'
import { otherAnswer, type World } from './world.ts'

/**
 * The result for one convention, streamed or not. `difference` says how the routed answer differs from the direct
 * answer, and is undefined if both are equal.
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

type CompareAnswers = (convention: Convention, streamed: boolean) => Promise<string | undefined>

const ways = conventions.flatMap((convention) => [false, true].map((streamed) => ({ convention, streamed })))

async function inEveryWay(compare: CompareAnswers, included: readonly Convention[] = conventions): Promise<Cell[]> {
  const cells: Cell[] = []
  for (const { convention, streamed } of ways.filter((way) => included.includes(way.convention)))
    cells.push({ convention: convention.name, streamed, difference: await compare(convention, streamed) })
  return cells
}

const show = (outcome: Outcome): string => JSON.stringify(outcome).slice(0, 300)

/** Whether the routed answer equals the direct one. If the server counts no tokens, svc-router estimates them. */
function isEqual(expected: Outcome, routed: Outcome): boolean {
  if (isFailure(expected) || isFailure(routed))
    return (
      isFailure(expected) && isFailure(routed) && expected.status === routed.status && expected.code === routed.code
    )
  if (expected.tokens.input !== undefined) return isDeepStrictEqual(expected, routed)
  return isDeepStrictEqual(expected, { ...routed, tokens: expected.tokens })
}

function compare(expected: Outcome, routed: Outcome, isRight = isEqual(expected, routed)): string | undefined {
  return isRight ? undefined : `direct ${show(expected)}, routed ${show(routed)}`
}

/** The routed answer must equal the direct one. If the direct one is a failure, `failed` checks the routed one. */
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
        // Some servers reject `reasoning_effort`, so the direct request omits it.
        const expected = await ask(direct, world.direct, { ...question, hasEffort: false }, { streamed })
        const routed = await ask(convention, world.routed(profile), question, { streamed })
        return compare(expected, routed, isFailure(expected) ? failed(routed) : isEqual(expected, routed))
      }),
  }
}

const hello: Question = { prompt: 'Hello.', maxTokens: 200 }
const tooLong: Question = { prompt: 'long '.repeat(1_000), maxTokens: 200 }
const image: Question = { prompt: 'What is this?', maxTokens: 200, hasImage: true }
const endless: Question = { prompt: 'Count forever.', maxTokens: 1_900 }

const answeredByOther = (routed: Outcome): boolean => !isFailure(routed) && routed.text.startsWith(otherAnswer)

const isContextLength = (routed: Outcome): boolean =>
  isFailure(routed) && routed.status === 400 && routed.code === 'context_length_exceeded'

const isClientError = (routed: Outcome): boolean => isFailure(routed) && routed.status >= 400 && routed.status < 500

const burstMs = 1_000

/** If the server rejects the request, the owner of the backend can read the server's message. */
const longAnswer: Case = {
  name: 'more tokens than the window',
  run: async (world) => {
    // svc-router stores only the first errors of a burst, and the cases before this one caused a burst.
    await sleep(burstMs)
    return inEveryWay(async (convention, streamed) => {
      const question: Question = { ...hello, maxTokens: 100_000 }
      const expected = await ask(direct, world.direct, question, { streamed })
      const routed = await ask(convention, world.routed(), question, { streamed })
      if (!isFailure(expected)) return compare(expected, routed)
      if (!isClientError(routed)) return compare(expected, routed, false)
      const providerErrors = await world.latestProviderErrors()
      if (expected.message === undefined || providerErrors.some((text) => isSameError(text, expected.message!)))
        return undefined
      return `direct ${show(expected)}, the owner reads ${JSON.stringify(providerErrors)}`
    })
  },
}

/** Each endpoint of vLLM uses the field name of its own format. */
function isSameError(one: string, other: string): boolean {
  const sameNames = (text: string): string => text.replaceAll(/max_(?:completion_|output_)?tokens/g, 'max_tokens')
  return sameNames(one) === sameNames(other)
}

const stop: Case = {
  name: 'stop',
  run: (world) =>
    inEveryWay(
      async (convention, streamed) => {
        const question: Question = { ...hello, stop: 'question' }
        const expected = await ask(direct, world.direct, question, { streamed })
        return compare(expected, await ask(convention, world.routed(), question, { streamed }))
      },
      conventions.filter(({ name }) => name !== 'responses'),
    ),
}

/** Enough rejected images to open a circuit breaker if they counted, but text requests still succeed. */
const textAfterImages: Case = {
  name: 'answers text after ten images',
  run: (world) =>
    inEveryWay(async (convention, streamed) => {
      for (let sent = 0; sent < 10; sent += 1) await ask(convention, world.routed(), image, { streamed })
      const expected = await ask(direct, world.direct, hello, { streamed })
      return compare(expected, await ask(convention, world.routed(), hello, { streamed }))
    }),
}

const concurrentRequests = 12
const queueing: Case = {
  name: `answers ${concurrentRequests} concurrent requests`,
  run: (world) =>
    inEveryWay(async (convention, streamed) => {
      const expected = await ask(direct, world.direct, hello, { streamed })
      const all = await Promise.all(
        Array.from({ length: concurrentRequests }, () => ask(convention, world.routed(), hello, { streamed })),
      )
      const other = all.find((routed) => !isEqual(expected, routed))
      return other === undefined ? undefined : compare(expected, other)
    }),
}

const busyForMs = 600
const idleWithinWindows = 5
const endsWithinWindows = 120
const idleWindowMs = 500
const idleShare = 0.1

/**
 * Whether the server stops computing within this many windows. They are counted, because a machine that stands still for a
 * second would use up a limit of time. vLLM is busy for one second after every aborted request.
 */
async function becomesIdle(engine: ServerProcess, withinWindows: number): Promise<boolean> {
  for (let windows = 0; windows < withinWindows; windows += 1) {
    const [startMs, before] = [performance.now(), engine.cpuSeconds()]
    await sleep(idleWindowMs)
    const share = (engine.cpuSeconds() - before) / ((performance.now() - startMs) / 1_000)
    if (share <= idleShare) return true
  }
  return false
}

const abort: Case = {
  name: 'abort',
  run: async (world) => {
    const [engine] = world.running.processes
    const stopsAfterDisconnect = async (
      convention: Convention,
      endpoint: World['direct'],
      streamed: boolean,
    ): Promise<boolean> => {
      // Wait for earlier requests that still run, so that their CPU time is not attributed to this one.
      await becomesIdle(engine, endsWithinWindows)
      const disconnect = new AbortController()
      const first = Promise.withResolvers<void>()
      const answer = ask(convention, endpoint, endless, { streamed, signal: disconnect.signal, onPiece: first.resolve })
      await (streamed ? Promise.race([first.promise, answer]) : sleep(busyForMs))
      disconnect.abort()
      await answer
      // Without the disconnect, the server would compute for longer than this.
      return becomesIdle(engine, idleWithinWindows)
    }
    return inEveryWay(async (convention, streamed) => {
      const stopsDirect = await stopsAfterDisconnect(direct, world.direct, streamed)
      const stopsRouted = await stopsAfterDisconnect(convention, world.routed(), streamed)
      return stopsRouted || !stopsDirect
        ? undefined
        : 'the server stops after a direct request and continues after a routed one'
    })
  },
}

const abortedByServer: Case = {
  name: 'aborted by the server',
  run: async (world) => {
    const { abortAll } = world.running
    if (abortAll === undefined) return []
    const abortAnswer = async (
      convention: Convention,
      endpoint: World['direct'],
      streamed: boolean,
    ): Promise<Outcome> => {
      const first = Promise.withResolvers<void>()
      const answer = ask(convention, endpoint, endless, { streamed, onPiece: first.resolve })
      await (streamed ? Promise.race([first.promise, answer]) : sleep(busyForMs))
      await abortAll()
      return answer
    }
    return inEveryWay(async (convention, streamed) => {
      const expected = await abortAnswer(direct, world.direct, streamed)
      const routed = await abortAnswer(convention, world.routed(), streamed)
      return compare(expected, routed, isFailure(expected) && isFailure(routed))
    })
  },
}

const firstPiecesWithinMs = 5_000
const backWithinMs = 30_000
const retryEveryMs = 250

/** Whether this is the endless answer, complete up to its length limit. */
const isComplete = (outcome: Outcome): boolean =>
  !isFailure(outcome) && outcome.end === 'length' && outcome.text.trim().split(' ').length === endless.maxTokens

/**
 * Ends the server while it sends an answer in every convention, then restarts it and expects that svc-router uses it
 * again. `end` returns whether all answers end alike. A server that is killed while it finishes them one after the other
 * has finished some: then no answer may be truncated and look complete.
 */
async function endDuringAnswers(world: World, process: ServerProcess, end: () => Promise<boolean>): Promise<Cell[]> {
  const began: Promise<void>[] = []
  const start = (convention: Convention, endpoint: World['direct'], streamed: boolean): Promise<Outcome> => {
    const first = Promise.withResolvers<void>()
    if (streamed) began.push(first.promise)
    return ask(convention, endpoint, endless, { streamed, onPiece: first.resolve })
  }
  const directAnswers = [false, true].map((streamed) => start(direct, world.direct, streamed))
  const routed = ways.map(({ convention, streamed }) => start(convention, world.routed(), streamed))
  // A server that answers one request at a time never starts them all.
  await Promise.race([Promise.all(began), sleep(firstPiecesWithinMs)])
  const endedEarly = await Promise.all(
    directAnswers.map((answer) => Promise.race([answer.then(() => true), sleep(0, false)])),
  )
  const isAlike = await end()
  const ends = await Promise.all(directAnswers)
  const routedEnds = await Promise.all(routed)
  await process.start()
  const ready = performance.now()
  return inEveryWay(async (convention, streamed) => {
    const directEnd = ends[streamed ? 1 : 0]!
    const routedEnd = routedEnds[ways.findIndex((way) => way.convention === convention && way.streamed === streamed)]!
    // A server that answers one request at a time may have answered the direct one before it ended.
    const isRight = isFailure(routedEnd) === isFailure(directEnd) || !isAlike || endedEarly[streamed ? 1 : 0]
    const difference = compare(directEnd, routedEnd, isRight && (isFailure(routedEnd) || isComplete(routedEnd)))
    if (difference !== undefined) return difference
    const after = await ask(direct, world.direct, hello, { streamed })
    for (;;) {
      const routedAfter = await ask(convention, world.routed(), hello, { streamed })
      if (isEqual(after, routedAfter)) return undefined
      if (performance.now() > ready + backWithinMs)
        return `not back within ${backWithinMs / 1_000} s: ${compare(after, routedAfter)}`
      await sleep(retryEveryMs)
    }
  })
}

const shutdown: Case = {
  name: 'shutdown during answers',
  run: (world) => {
    const [engine] = world.running.processes
    return endDuringAnswers(world, engine, () => engine.stop())
  },
}

const crash: Case = {
  name: 'crash during answers',
  run: (world) => {
    const lastProcess = world.running.processes.at(-1)!
    return endDuringAnswers(world, lastProcess, async () => {
      await lastProcess.kill()
      return true
    })
  },
}

/** Every case, in the order in which it runs. */
export const cases: readonly Case[] = [
  questionCase('text', hello),
  questionCase('tools', { prompt: 'How is the weather in Oslo?', maxTokens: 200, hasTool: true }),
  questionCase('schema', { prompt: 'The weather, as JSON.', maxTokens: 200, hasSchema: true }, isFailure),
  questionCase('effort', { ...hello, hasEffort: true }),
  stop,
  questionCase('length', { prompt: 'Count forever.', maxTokens: 20 }),
  questionCase('too long', tooLong, isContextLength),
  questionCase('too long, then a backend with a larger window', tooLong, answeredByOther, 'test/first'),
  longAnswer,
  questionCase('image', image, isClientError),
  questionCase('image, then a backend that supports images', image, answeredByOther, 'test/first'),
  textAfterImages,
  queueing,
  abort,
  abortedByServer,
  shutdown,
  crash,
]

// The load generator, in its own process. It only counts and measures.
import { sessionNumber } from './bodies.ts'
import { ClientConnection } from './client-connection.ts'
import type { WireAnswer } from './client-connection.ts'
import type { LoadCommand, LoadReport, Target } from './protocol.ts'

const maxFailures = 50
/** How long answers may take to arrive after the run's time is up. */
const drainMs = 30_000
const openConnectionsAtFirst = 16
const maxOpenConnections = 256
const idleConnectsAtOnce = 200
const openTickMs = 1

/** Counts the results of one run, and ends it once. */
class Tally {
  readonly latenciesUs: number[] = []
  answers = 0
  #shortestBytes = Number.POSITIVE_INFINITY
  #failures: Record<string, number> = {}
  #failureCount = 0
  #lastAnswerMs = performance.now()
  readonly #startMs = performance.now()

  see(answer: WireAnswer): void {
    if (answer.status !== 200) return this.fail(`status ${answer.status}`)
    this.answers++
    this.#shortestBytes = Math.min(this.#shortestBytes, answer.bodyBytes)
    this.#lastAnswerMs = performance.now()
  }

  fail(reason: string): void {
    this.#failures[reason] = (this.#failures[reason] ?? 0) + 1
    this.#failureCount++
  }

  get isHopeless(): boolean {
    return this.#failureCount >= maxFailures
  }

  report(): LoadReport {
    return {
      answers: this.answers,
      elapsedMs: this.#lastAnswerMs - this.#startMs,
      shortestBytes: this.answers === 0 ? 0 : this.#shortestBytes,
      failures: this.#failures,
      latenciesUs: this.latenciesUs,
      idleOpen: idle.size,
    }
  }
}

/** What each connection sends: the same request each time, or the turns of a session, and then those of another one. */
class Sessions {
  readonly #turns: readonly Buffer[]
  /** Where the number of the session is in a request; -1 if it has none. */
  readonly #numberAt: readonly number[]
  readonly #sent = new WeakMap<ClientConnection, { number: string; turn: number }>()
  #started = 0

  constructor(requests: readonly string[]) {
    this.#turns = requests.map((request) => Buffer.from(request))
    this.#numberAt = this.#turns.map((request) => request.indexOf(sessionNumber))
  }

  next(connection: ClientConnection): Buffer {
    if (this.#turns.length === 1) return this.#turns[0]!
    let session = this.#sent.get(connection)
    if (session === undefined || session.turn === this.#turns.length) {
      session = { number: String(++this.#started).padStart(sessionNumber.length, '0'), turn: 0 }
      this.#sent.set(connection, session)
    }
    const turn = session.turn++
    const request = Buffer.from(this.#turns[turn]!)
    request.write(session.number, this.#numberAt[turn]!, 'latin1')
    return request
  }
}

async function runClosed(command: LoadCommand & { do: 'closed' }): Promise<LoadReport> {
  const { target, besides = [], connections: count, maxRequests, durationMs } = command
  const targets = [target, ...besides].map(({ port, requests }) => ({ port, sessions: new Sessions(requests) }))
  const tally = new Tally()
  const open = new Set<ClientConnection>()
  const endMs = performance.now() + durationMs
  let sent = 0
  await new Promise<void>((resolve) => {
    const giveUp = setTimeout(() => {
      tally.fail('no answer in time')
      resolve()
    }, durationMs + drainMs)
    const next = (connection: ClientConnection, sessions: Sessions): void => {
      if (sent < maxRequests && performance.now() < endMs && !tally.isHopeless) {
        sent++
        connection.send(sessions.next(connection))
        return
      }
      connection.destroy()
    }
    const connectOne = ({ port, sessions }: (typeof targets)[number]): void => {
      open.add(
        new ClientConnection(port, {
          onOpen: (connection) => next(connection, sessions),
          onAnswer: (connection, answer) => {
            tally.see(answer)
            connection.rest()
            next(connection, sessions)
          },
          onClosed: (connection, error) => {
            open.delete(connection)
            if (connection.isAwaiting) tally.fail(error ?? 'closed without an answer')
            else if (error !== undefined) tally.fail(error)
            const isOver = sent >= maxRequests || performance.now() >= endMs || tally.isHopeless
            if (!isOver) connectOne({ port, sessions })
            else if (open.size === 0) {
              clearTimeout(giveUp)
              resolve()
            }
          },
        }),
      )
    }
    for (let index = 0; index < count; index++) connectOne(targets[index % targets.length]!)
  })
  for (const connection of open) connection.destroy()
  return tally.report()
}

async function runOpen(target: Target, perSecond: number, durationMs: number): Promise<LoadReport> {
  const request = Buffer.from(target.requests[0]!)
  const tally = new Tally()
  const free: ClientConnection[] = []
  const all = new Set<ClientConnection>()
  const wanted = Math.floor((perSecond * durationMs) / 1000)
  const connectOne = (firstRequest: Buffer | undefined): void => {
    all.add(
      new ClientConnection(target.port, {
        onOpen: (connection) => (firstRequest === undefined ? free.push(connection) : connection.send(firstRequest)),
        onAnswer: (connection, answer) => {
          tally.see(answer)
          tally.latenciesUs.push(Math.round(performance.now() * 1000 - connection.sentAtUs))
          connection.rest()
          free.push(connection)
        },
        onClosed: (connection, error) => {
          all.delete(connection)
          const place = free.indexOf(connection)
          if (place >= 0) free.splice(place, 1)
          if (connection.isAwaiting || error !== undefined) tally.fail(error ?? 'closed without an answer')
        },
      }),
    )
  }
  for (let index = 0; index < openConnectionsAtFirst; index++) connectOne(undefined)
  await until(() => free.length === all.size, drainMs)

  let sent = 0
  const startMs = performance.now()
  await until(() => {
    const due = Math.min(wanted, Math.floor(((performance.now() - startMs) * perSecond) / 1000))
    for (; sent < due; sent++) {
      const connection = free.pop()
      if (connection !== undefined) connection.send(request)
      else if (all.size < maxOpenConnections) connectOne(request)
      else tally.fail('no connection free')
    }
    return sent === wanted || tally.isHopeless
  }, durationMs + drainMs)
  if (!(await until(() => free.length === all.size, drainMs))) tally.fail('no answer in time')
  for (const connection of all) connection.destroy()
  return tally.report()
}

const idle = new Set<ClientConnection>()

async function holdIdle(port: number, count: number): Promise<LoadReport> {
  const tally = new Tally()
  let connecting = 0
  const connectOne = (): void => {
    connecting++
    const connection = new ClientConnection(port, {
      onOpen: (opened) => {
        connecting--
        idle.add(opened)
      },
      onAnswer: () => undefined,
      onClosed: (closed, error) => {
        if (!idle.delete(closed)) connecting--
        if (error !== undefined) tally.fail(error)
      },
    })
    void connection
  }
  const isDone = await until(() => {
    const room = Math.min(idleConnectsAtOnce - connecting, count - idle.size - connecting)
    for (let index = 0; index < room && !tally.isHopeless; index++) connectOne()
    return (idle.size >= count || tally.isHopeless) && connecting === 0
  }, drainMs)
  if (!isDone) tally.fail('not all connected in time')
  return tally.report()
}

function dropIdle(): LoadReport {
  const report = new Tally().report()
  for (const connection of idle) connection.destroy()
  return report
}

/** Checks a condition every millisecond; false after `timeoutMs`. */
async function until(isTrue: () => boolean, timeoutMs: number): Promise<boolean> {
  const endMs = performance.now() + timeoutMs
  return await new Promise((resolve) => {
    const timer = setInterval(() => {
      const isDone = isTrue()
      if (!isDone && performance.now() < endMs) return
      clearInterval(timer)
      resolve(isDone)
    }, openTickMs)
  })
}

async function obey(command: LoadCommand): Promise<void> {
  if (command.do === 'closed') process.send?.(await runClosed(command))
  else if (command.do === 'open') process.send?.(await runOpen(command.target, command.perSecond, command.durationMs))
  else if (command.do === 'hold-idle') process.send?.(await holdIdle(command.port, command.count))
  else process.send?.(dropIdle())
}

process.on('message', (command: LoadCommand) => void obey(command))
process.on('disconnect', () => process.exit(0))

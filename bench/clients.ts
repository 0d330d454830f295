import { sessionNumber } from './bodies.ts'
import { ClientConnection } from './client-connection.ts'
import type { LoadReport, Target } from './protocol.ts'
import { drainMs, Tally } from './tally.ts'

/** Of all runs: no two of them use the same session. */
let sessionsStarted = 0

/** What each connection sends: the same request each time, or the turns of a session, and then those of another one. */
class Sessions {
  readonly port: number
  readonly #turns: readonly Buffer[]
  /** Where the number of the session is in a request; -1 if it has none. */
  readonly #numberAt: readonly number[]
  readonly #sent = new WeakMap<ClientConnection, { number: string; turn: number }>()

  constructor({ port, requests }: Target) {
    this.port = port
    this.#turns = requests.map((request) => Buffer.from(request))
    this.#numberAt = this.#turns.map((request) => request.indexOf(sessionNumber))
  }

  next(connection: ClientConnection): Buffer {
    const count = this.#turns.length
    if (count === 1) return this.#turns[0]!
    let session = this.#sent.get(connection)
    if (session === undefined || session.turn === count) {
      const number = String(++sessionsStarted).padStart(sessionNumber.length, '0')
      // The first sessions begin later, so that short runs have requests of all sizes.
      session = { number, turn: session === undefined ? sessionsStarted % count : 0 }
      this.#sent.set(connection, session)
    }
    const turn = session.turn++
    const request = Buffer.from(this.#turns[turn]!)
    request.write(session.number, this.#numberAt[turn]!, 'latin1')
    return request
  }
}

interface Run {
  readonly tally: Tally
  readonly maxRequests: number
  readonly endMs: number
  readonly end: () => void
  sent: number
}

/** Connections that each send their next request after an answer, in one run or in several. Sessions go on in the next one. */
export class Clients {
  readonly #targets: readonly Sessions[]
  readonly #count: number
  readonly #open = new Map<ClientConnection, Sessions>()
  /** Connections of the run that have not finished. */
  readonly #busy = new Set<ClientConnection>()
  #connected = 0
  #run: Run | undefined

  /** `count` connections are divided evenly among the targets. */
  constructor(targets: readonly Target[], count: number) {
    this.#targets = targets.map((target) => new Sessions(target))
    this.#count = count
  }

  /** Sends requests for so long, or so many, and waits for their answers. */
  async run(durationMs: number, maxRequests = Number.POSITIVE_INFINITY): Promise<LoadReport> {
    const tally = new Tally()
    await new Promise<void>((resolve) => {
      const giveUp = setTimeout(() => {
        tally.fail('no answer in time')
        resolve()
      }, durationMs + drainMs)
      const end = (): void => {
        clearTimeout(giveUp)
        resolve()
      }
      this.#run = { tally, maxRequests, endMs: performance.now() + durationMs, end, sent: 0 }
      for (const connection of this.#open.keys()) this.#next(connection)
      while (this.#open.size < this.#count) this.#connect(this.#targets[this.#connected++ % this.#targets.length]!)
    })
    this.#run = undefined
    return tally.report()
  }

  disconnect(): void {
    for (const connection of this.#open.keys()) connection.destroy()
  }

  #connect(sessions: Sessions): void {
    const connection = new ClientConnection(sessions.port, {
      onOpen: (opened) => this.#next(opened),
      onAnswer: (answering, answer) => {
        this.#run?.tally.see(answer)
        answering.rest()
        this.#next(answering)
      },
      onClosed: (closed, error) => {
        this.#open.delete(closed)
        const run = this.#run
        if (run === undefined) return
        if (closed.isAwaiting) run.tally.fail(error ?? 'closed without an answer')
        else if (error !== undefined) run.tally.fail(error)
        if (isOver(run)) this.#finish(run, closed)
        else this.#connect(sessions)
        this.#busy.delete(closed)
      },
    })
    this.#open.set(connection, sessions)
    this.#busy.add(connection)
  }

  #next(connection: ClientConnection): void {
    const run = this.#run
    if (run === undefined) return
    if (isOver(run)) return this.#finish(run, connection)
    run.sent++
    this.#busy.add(connection)
    connection.send(this.#open.get(connection)!.next(connection))
  }

  #finish(run: Run, connection: ClientConnection): void {
    this.#busy.delete(connection)
    if (this.#busy.size === 0) run.end()
  }
}

function isOver({ sent, maxRequests, endMs, tally }: Run): boolean {
  return sent >= maxRequests || performance.now() >= endMs || tally.isHopeless
}

/** Longest wait for an answer, milliseconds: a process that hangs must not hang the one that asks. */
export const answerLimitMs = 1_000
/** Questions that wait at one process; more get no answer. */
const maxWaiting = 100

/** One end of the channel between a process and a child: `ChildProcess`, or `process` in the child. */
export interface ChannelEnd {
  readonly connected: boolean
  send?(message: object, onSent: (error: Error | null) => void): boolean
  on(event: 'message', listener: (message: unknown) => void): unknown
}

interface Question {
  readonly ask: number
  readonly topic: string
  readonly data: unknown
}

interface Answer {
  readonly answerTo: number
  readonly data: unknown
}

/** Questions and answers between a process and its child, in both directions, as JSON. */
export class ProcessReports {
  readonly #end: ChannelEnd
  readonly #answers = new Map<string, (data: unknown) => unknown>()
  readonly #waiting = new Map<number, (data: unknown) => void>()
  #lastId = 0

  constructor(end: ChannelEnd) {
    this.#end = end
    end.on('message', (message) => {
      if (isAnswer(message)) this.#waiting.get(message.answerTo)?.(message.data)
      else if (isQuestion(message)) void this.#reply(message)
    })
  }

  /** Answers questions about a topic. `read` gets the data of the question, and must not throw. */
  answer(topic: string, read: (data: unknown) => unknown): void {
    this.#answers.set(topic, read)
  }

  /** The other process's answer, or undefined if it gives none in time. */
  async ask(
    topic: string,
    { data, limitMs = answerLimitMs }: { data?: unknown; limitMs?: number } = {},
  ): Promise<unknown> {
    if (this.#waiting.size >= maxWaiting || !this.#end.connected) return undefined
    const ask = ++this.#lastId
    const { promise, resolve } = Promise.withResolvers<unknown>()
    this.#waiting.set(ask, resolve)
    const limit = setTimeout(() => resolve(undefined), limitMs)
    this.#send({ ask, topic, data } satisfies Question)
    try {
      return await promise
    } finally {
      clearTimeout(limit)
      this.#waiting.delete(ask)
    }
  }

  async #reply({ ask, topic, data }: Question): Promise<void> {
    const read = this.#answers.get(topic)
    if (read !== undefined) this.#send({ answerTo: ask, data: await read(data) } satisfies Answer)
  }

  /** A message that cannot be sent is like a question without an answer. */
  #send(message: object): void {
    if (this.#end.connected) this.#end.send?.(message, () => {})
  }
}

function isQuestion(message: unknown): message is Question {
  return typeof message === 'object' && message !== null && 'ask' in message
}

function isAnswer(message: unknown): message is Answer {
  return typeof message === 'object' && message !== null && 'answerTo' in message
}

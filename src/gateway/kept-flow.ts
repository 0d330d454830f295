import { asError } from '../domain/bugs.ts'
import type { JsonObject } from '../domain/conversation.ts'
import { isObject } from '../domain/json.ts'
import { dataOfLines, restateEvent } from '../formats/restate.ts'
import type { AttemptRun, Flow } from './attempt.ts'
import type { Keeping } from './keeping.ts'

const maxBehindChars = 64 * 1024
const terminal = /"type"\s*:\s*"response\.(?:completed|incomplete)"/g

/** Wraps the flow of a stream whose answer is stored; returns the flow itself if it is not. */
export function keptFlow(run: AttemptRun, flow: Flow, keeping: Keeping | undefined): Flow {
  return keeping === undefined ? flow : new KeptFlow(run, flow, keeping)
}

/** Persists the whole answer of a finished attempt; returns its bytes, changed if it could not be stored. */
export async function keepWhole(run: AttemptRun, keeping: Keeping): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  run.flowTo({ write: () => {}, ended: (answer) => resolve(Buffer.from(answer)), broke: reject })
  return keeping.keepWhole(await promise)
}

/**
 * Holds back a stream's last event until the answer is saved, because a reader that sees it complete may continue
 * from it (contract 12.6).
 */
class KeptFlow implements Flow {
  readonly #run: AttemptRun
  readonly #flow: Flow
  readonly #keeping: Keeping
  #state: 'flowing' | 'saving' | 'over' = 'flowing'
  /** Text that arrived while the answer was being saved. */
  #behind = ''
  #hasEnded = false

  constructor(run: AttemptRun, flow: Flow, keeping: Keeping) {
    this.#run = run
    this.#flow = flow
    this.#keeping = keeping
  }

  write(text: string): void {
    if (this.#state === 'saving') this.#wait(text)
    else if (this.#state === 'over' || !this.#run.lane.finished || !this.#hold(text)) this.#flow.write(text)
  }

  ended(last: string | Buffer): void {
    const text = typeof last === 'string' ? last : last.toString(this.#run.lane.encoding)
    this.#hasEnded = true
    if (this.#state === 'saving') this.#wait(text)
    else if (this.#state === 'over' || !this.#hold(text)) this.#flow.ended(text)
  }

  broke(error: Error): void {
    this.#state = 'over'
    this.#behind = ''
    this.#flow.broke(error)
  }

  /** A well-behaved backend sends almost nothing after the terminal event; this caps what is buffered from others. */
  #wait(text: string): void {
    if (this.#behind.length + text.length <= maxBehindChars) this.#behind += text
  }

  /** Writes the text before the terminal event and buffers the rest; false if the event is not in this text. */
  #hold(text: string): boolean {
    terminal.lastIndex = 0
    const found = terminal.exec(text)
    if (found === null) return false
    const start = text.lastIndexOf('\n\n', found.index) + 2
    const from = start === 1 ? 0 : start
    const end = text.indexOf('\n\n', found.index)
    const block = text.slice(from, end)
    this.#state = 'saving'
    this.#behind = text.slice(end)
    if (from > 0) this.#flow.write(text.slice(0, from))
    this.#save(block).catch((error: unknown) => {
      if (this.#state === 'saving') this.broke(asError(error))
    })
    return true
  }

  async #save(block: string): Promise<void> {
    const { encoding } = this.#run.lane
    const data = Buffer.from(dataOfLines(block.split('\n')), encoding).toString('utf8')
    const { response } = JSON.parse(data) as { response?: JsonObject }
    const changes = isObject(response) ? await this.#keeping.keep(response) : this.#keeping.unread()
    if (this.#state !== 'saving') return
    this.#state = 'over'
    const bytes = encoding === 'latin1' ? block : Buffer.from(block, 'utf8').toString('latin1')
    const shown =
      changes === undefined ? block : Buffer.from(restateEvent(bytes, changes).block, 'latin1').toString(encoding)
    const rest = shown + this.#behind
    this.#behind = ''
    if (this.#hasEnded) this.#flow.ended(rest)
    else this.#flow.write(rest)
  }
}

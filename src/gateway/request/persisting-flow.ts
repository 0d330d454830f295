import { type JsonObject, isObject } from '../../domain/json.ts'
import { dataOfLines, patchEvent } from '../../formats/patch-json.ts'
import { asError } from '../../runtime/describe-bug.ts'
import { yieldToEventLoop } from '../../runtime/yield-to-event-loop.ts'
import type { ResponsePersister } from '../responses/response-persister.ts'
import type { AnswerFlow } from './attempt-options.ts'
import type { AttemptRun } from './attempt.ts'
import type { RequestRunOptions } from './request-run-options.ts'

/** Maximum characters after the terminal event that are buffered. */
const maxTailChars = 64 * 1024
const terminal = /"type"\s*:\s*"response\.(?:completed|incomplete)"/g

/** Wraps the flow of a stream whose answer is stored; returns the flow itself if it is not. */
export function persistingFlow(
  run: AttemptRun,
  flow: AnswerFlow,
  persister: ResponsePersister | undefined,
): AnswerFlow {
  return persister === undefined ? flow : new PersistingFlow(run, flow, persister)
}

/** Persists the whole answer of a finished attempt; returns its bytes, changed if it could not be stored. */
export async function persistWhole(run: AttemptRun, persister: ResponsePersister): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  run.flowTo({
    write: () => {},
    ended: (answer) => resolve(typeof answer === 'string' ? Buffer.from(answer, run.lane.encoding) : answer),
    broke: reject,
  })
  return persister.persistWhole(await promise)
}

/** A background response that was canceled or deleted must not appear again (contract 39.21). */
export async function discardUnwanted(
  { request, sink, persister }: Pick<RequestRunOptions, 'request' | 'sink' | 'persister'>,
  isWhole: boolean,
): Promise<void> {
  if (request.isBackground !== true || persister === undefined) return
  const isStored = async (): Promise<boolean> => {
    try {
      await sink.stored?.()
      return true
    } catch {
      // The sink has reported why.
      return false
    }
  }
  if (!isWhole || !(await isStored())) await persister.discard()
}

/**
 * Holds back a stream's last event until the answer is saved, because a reader that sees it complete may continue
 * from it (contract 12.6).
 */
class PersistingFlow implements AnswerFlow {
  readonly #run: AttemptRun
  readonly #flow: AnswerFlow
  readonly #persister: ResponsePersister
  #state: 'flowing' | 'saving' | 'over' = 'flowing'
  /** Text that arrived while the answer was being saved. */
  #next = ''
  #hasEnded = false

  constructor(run: AttemptRun, flow: AnswerFlow, persister: ResponsePersister) {
    this.#run = run
    this.#flow = flow
    this.#persister = persister
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
    this.#next = ''
    this.#flow.broke(error)
  }

  /** Drops what exceeds the limit: a well-behaved backend sends almost nothing after the terminal event. */
  #wait(text: string): void {
    if (this.#next.length + text.length <= maxTailChars) this.#next += text
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
    this.#next = text.slice(end)
    if (from > 0) this.#flow.write(text.slice(0, from))
    this.#save(block).catch((error: unknown) => {
      if (this.#state === 'saving') this.broke(asError(error))
    })
    return true
  }

  async #persist(block: string): ReturnType<ResponsePersister['persist']> {
    if (this.#persister.isTooLarge(block)) return this.#persister.unread()
    // Reading it again and storing it are other turns than the one that received it.
    await yieldToEventLoop(block)
    const data = Buffer.from(dataOfLines(block.split('\n')), this.#run.lane.encoding).toString('utf8')
    const { response } = JSON.parse(data) as { response?: JsonObject }
    await yieldToEventLoop(block)
    return isObject(response) ? this.#persister.persist(response) : this.#persister.unread()
  }

  async #save(block: string): Promise<void> {
    const { encoding } = this.#run.lane
    const changes = await this.#persist(block)
    if (this.#state !== 'saving') return
    this.#state = 'over'
    const bytes = encoding === 'latin1' ? block : Buffer.from(block, 'utf8').toString('latin1')
    const shown = changes === undefined ? block : Buffer.from(patchEvent(bytes, changes), 'latin1').toString(encoding)
    const rest = shown + this.#next
    this.#next = ''
    if (this.#hasEnded) this.#flow.ended(rest)
    else this.#flow.write(rest)
  }
}

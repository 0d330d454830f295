import type { ServiceError } from '../../domain/errors.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { AnswerHead, AnswerSink } from '../ports.ts'

/** Transforms the whole answer that passes through it; everything else passes unchanged. */
export class CompactionSink implements AnswerSink {
  readonly #sink: AnswerSink
  readonly #transform: (answer: JsonObject) => JsonObject
  readonly stored?: () => Promise<void>

  constructor(sink: AnswerSink, transform: (answer: JsonObject) => JsonObject) {
    this.#sink = sink
    this.#transform = transform
    if (sink.stored !== undefined) this.stored = () => sink.stored!()
  }

  open(head: AnswerHead): void {
    this.#sink.open(head)
  }

  write(bytes: string | Uint8Array, encoding?: 'latin1' | 'utf8'): boolean {
    return this.#sink.write(bytes, encoding)
  }

  end(bytes?: string | Uint8Array, encoding: 'latin1' | 'utf8' = 'utf8'): void {
    if (bytes === undefined || bytes.length === 0) return this.#sink.end()
    const text = typeof bytes === 'string' ? Buffer.from(bytes, encoding) : Buffer.from(bytes)
    this.#sink.end(JSON.stringify(this.#transform(JSON.parse(text.toString('utf8')) as JsonObject)))
  }

  hold(): void {
    this.#sink.hold()
  }

  release(): void {
    this.#sink.release()
  }

  drop(): void {
    this.#sink.drop()
  }

  onDrain(run: () => void): void {
    this.#sink.onDrain(run)
  }

  onDisconnect(run: (failure?: ServiceError) => void): void {
    this.#sink.onDisconnect(run)
  }
}

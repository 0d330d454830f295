import type { AnswerEvent, FinishReason, Usage } from '../../../domain/conversation.ts'
import type { JsonObject } from '../../../domain/json.ts'
import type { FusionPort } from './ports.ts'
import { splitIntoPieces } from './split-into-pieces.ts'

export interface EventWriterOptions {
  readonly port: Pick<FusionPort, 'emit' | 'emitProgress'>
  /** Aborted when the client disconnects: nothing is written from then on. */
  readonly caller: AbortSignal
  readonly streamsProgress: boolean
  /** Whether progress may also be written after content, between parts of an answer. */
  readonly showsProgressBetween?: boolean
}

/** Writes everything that reaches the caller: start, progress, content, usage, finish, in order. */
export class EventWriter {
  readonly #options: EventWriterOptions
  readonly #clientDisconnected = Promise.withResolvers<void>()
  readonly #onDisconnect = (): void => this.#clientDisconnected.resolve()
  #isReasoning = false
  #hasContent = false
  #sealed: string | undefined

  constructor(options: EventWriterOptions) {
    this.#options = options
    options.caller.addEventListener('abort', this.#onDisconnect, { once: true })
  }

  /** Whether any of the answer itself was written: from then on it cannot be replaced. */
  get hasContent(): boolean {
    return this.#hasContent
  }

  /** Opens the answer, before anything is known. */
  begin(): void {
    this.#writeProgress([{ type: 'start' }])
  }

  /** Writes progress (contract 15.10). */
  reportProgress(text: string): void {
    const { streamsProgress, showsProgressBetween = false } = this.#options
    if (!streamsProgress || (this.#hasContent && !showsProgressBetween)) return
    this.#isReasoning = true
    this.#writeProgress([{ type: 'reasoning', text }])
  }

  /** Writes events that belong to the answer but are not content. */
  note(events: readonly AnswerEvent[]): void {
    this.#writeProgress([...this.#endReasoning(), ...events])
  }

  /**
   * Sets the encrypted value that the caller is to send back: written at the end of the progress, before the answer's
   * first word.
   */
  attachSealed(sealed: string | undefined): void {
    this.#sealed = sealed
  }

  /** Writes events of the answer. The promise, if any, resolves when the reader has caught up or disconnected. */
  write(events: readonly AnswerEvent[]): Promise<void> | undefined {
    if (events.length === 0) return undefined
    const first = this.#endReasoning()
    this.#hasContent = true
    const caughtUp = this.#emit([...first, ...events])
    return caughtUp === undefined ? undefined : Promise.race([caughtUp, this.#clientDisconnected.promise])
  }

  /** Writes a whole text, in pieces, at the reader's speed. */
  async writeAll(text: string, type: 'text' | 'refusal' = 'text'): Promise<void> {
    for (const piece of splitIntoPieces(text)) {
      const caughtUp = this.write([{ type, text: piece }])
      if (caughtUp !== undefined) await caughtUp
    }
  }

  /** Ends a complete answer. */
  end(usage: Usage, reason: FinishReason, report?: JsonObject): void {
    const first = this.#endReasoning()
    if (report !== undefined) first.push({ type: 'report', report })
    void this.#emit([...first, { type: 'usage', usage }, { type: 'finish', reason }])
  }

  /** Stops all writing. */
  close(): void {
    this.#options.caller.removeEventListener('abort', this.#onDisconnect)
    this.#clientDisconnected.resolve()
  }

  #endReasoning(): AnswerEvent[] {
    const sealed = this.#sealed
    if (!this.#isReasoning && sealed === undefined) return []
    this.#isReasoning = false
    this.#sealed = undefined
    return [{ type: 'reasoning_end', ...(sealed === undefined ? {} : { sealed }) }]
  }

  #writeProgress(events: readonly AnswerEvent[]): void {
    const { caller, port } = this.#options
    if (caller.aborted) return
    if (port.emitProgress === undefined) void port.emit(events)
    else port.emitProgress(events)
  }

  #emit(events: readonly AnswerEvent[]): Promise<void> | undefined {
    return this.#options.caller.aborted ? undefined : this.#options.port.emit(events)
  }
}

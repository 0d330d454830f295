import type { AnswerEvent, FinishReason, JsonObject, Usage } from '../../domain/conversation.ts'
import { cutPieces } from './cut-pieces.ts'
import type { FusionPort } from './ports.ts'

export interface OutletOf {
  readonly port: Pick<FusionPort, 'emit' | 'tell'>
  /** Aborted when the client disconnects: nothing is written from then on. */
  readonly caller: AbortSignal
  readonly tellsProgress: boolean
  /** Whether progress may also be written after content, between parts of an answer. */
  readonly tellsBetween?: boolean
}

/** Writes everything that reaches the caller: start, progress, content, usage, finish, in order. */
export class Outlet {
  readonly #of: OutletOf
  readonly #gone = Promise.withResolvers<void>()
  readonly #leave = (): void => this.#gone.resolve()
  #isReasoning = false
  #hasContent = false
  #sealed: string | undefined

  constructor(of: OutletOf) {
    this.#of = of
    of.caller.addEventListener('abort', this.#leave, { once: true })
  }

  /** Whether any of the answer itself was written: from then on it cannot be replaced. */
  get hasContent(): boolean {
    return this.#hasContent
  }

  /** Opens the answer, before anything is known. */
  begin(): void {
    this.#tell([{ type: 'start' }])
  }

  /** Writes progress. */
  tell(text: string): void {
    const { tellsProgress, tellsBetween = false } = this.#of
    if (!tellsProgress || (this.#hasContent && !tellsBetween)) return
    this.#isReasoning = true
    this.#tell([{ type: 'reasoning', text }])
  }

  /** Writes events that belong to the answer but are not content. */
  note(events: readonly AnswerEvent[]): void {
    this.#tell([...this.#endReasoning(), ...events])
  }

  /**
   * Sets the encrypted value that the caller is to send back: written at the end of the progress, before the answer's
   * first word.
   */
  seal(sealed: string | undefined): void {
    this.#sealed = sealed
  }

  /** Writes events of the answer. The promise, if any, resolves when the reader has caught up or disconnected. */
  say(events: readonly AnswerEvent[]): Promise<void> | undefined {
    if (events.length === 0) return undefined
    const first = this.#endReasoning()
    this.#hasContent = true
    const caughtUp = this.#emit([...first, ...events])
    return caughtUp === undefined ? undefined : Promise.race([caughtUp, this.#gone.promise])
  }

  /** Writes a whole text, in pieces, at the reader's speed. */
  async sayAll(text: string, type: 'text' | 'refusal' = 'text'): Promise<void> {
    for (const piece of cutPieces(text)) {
      const caughtUp = this.say([{ type, text: piece }])
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
    this.#of.caller.removeEventListener('abort', this.#leave)
    this.#gone.resolve()
  }

  #endReasoning(): AnswerEvent[] {
    const sealed = this.#sealed
    if (!this.#isReasoning && sealed === undefined) return []
    this.#isReasoning = false
    this.#sealed = undefined
    return [{ type: 'reasoning_end', ...(sealed === undefined ? {} : { sealed }) }]
  }

  #tell(events: readonly AnswerEvent[]): void {
    const { caller, port } = this.#of
    if (caller.aborted) return
    if (port.tell === undefined) void port.emit(events)
    else port.tell(events)
  }

  #emit(events: readonly AnswerEvent[]): Promise<void> | undefined {
    return this.#of.caller.aborted ? undefined : this.#of.port.emit(events)
  }
}

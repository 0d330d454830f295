import type { AnswerEvent, FinishReason, Usage } from '../../../domain/conversation.ts'
import type { JsonObject } from '../../../domain/json.ts'
import type { Format } from '../../../formats/format.ts'
import type { DeliberationListener } from '../engine/deliberate.ts'
import { EventWriter } from '../engine/event-writer.ts'
import { progress } from '../engine/prompts.ts'
import { publicCall } from '../engine/report.ts'
import type { FusionSettings } from '../engine/settings.ts'
import type { FusionSession } from '../fused-answer.ts'
import type { Questions } from './questions.ts'
import type { FailureReason, ToolRunResult } from './tool-runs.ts'

/** Why the tool ran: called by the model, or a reason to run before the model was called. */
export type RunReason = 'called' | 'always' | 'forced' | 'deferred' | 'no_tool_support'

/**
 * Writes everything that the caller sees of an answer with the fusion tool: the reply, its progress, and the report.
 */
export class ToolRunReporter {
  readonly #session: FusionSession
  readonly #settings: FusionSettings
  readonly #writer: EventWriter
  #reason: RunReason | undefined
  #runs = 0
  #last: ToolRunResult | undefined
  #isWaiting = false
  #refused: FailureReason | undefined
  /** Whether the last reply ended within a line that the next one would continue. */
  #isWithinText = false
  #isNewTurn = false

  constructor(session: FusionSession, settings: FusionSettings) {
    const { context, port, signal } = session
    this.#session = session
    this.#settings = settings
    this.#writer = new EventWriter({
      port,
      caller: signal,
      streamsProgress: settings.streamsProgress && context.conversation.stream && settings.resultItem !== 'none',
      showsProgressBetween: true,
    })
  }

  begin(): void {
    this.#writer.begin()
  }

  close(): void {
    this.#writer.close()
  }

  /** Reports the progress of a run. */
  get listener(): DeliberationListener & { onBegin(asked: number): void } {
    const report = (text: string): void => {
      this.#writer.reportProgress(text)
      // A reasoning item of its own ends the text before it.
      if (this.#format.hasOneText !== true) this.#isWithinText = false
    }
    return {
      onBegin: (asked) => report(progress.asked(asked)),
      onAnswer: (answered, asked) => report(progress.answered(answered, asked)),
      onCompared: (disagreements) => report(progress.compared(disagreements)),
    }
  }

  get #format(): Format {
    const { deps, request } = this.#session
    return deps.formats(request.format)
  }

  /** Marks the start of another reply of the model. */
  turn(): void {
    this.#isNewTurn = true
  }

  /** Passes on the model's events. The promise, if any, resolves when the reader has caught up. */
  writeText(events: readonly AnswerEvent[]): Promise<void> | undefined {
    return this.#writer.write(events.map((event) => (event.type === 'text' ? this.#apart(event) : event)))
  }

  /** Writes a whole text that did not come from a reply of the model. */
  writeEvents(text: string): Promise<void> {
    this.#isNewTurn = true
    return this.#writer.writeAll(this.#isWithinText ? `\n\n${text}` : text)
  }

  /** Records a finished run, and shows it if the caller's format has items for it (contract 16.9). */
  finished(reason: RunReason, questions: Questions | undefined, result: ToolRunResult): void {
    this.#reason ??= reason
    this.#runs += 1
    this.#last = result
    const { resultItem } = this.#settings
    if (this.#format.hasServiceCalls !== true || resultItem === 'none' || resultItem === 'reasoning') return
    const shape = resultItem === 'native' ? 'native' : 'mcp_call'
    const callArguments: JsonObject = questions === undefined ? {} : { ...questions }
    const outcome =
      'failure' in result
        ? { result: {}, error: result.failure }
        : { result: { status: 'ok', ...result.report }, error: undefined }
    this.#isWithinText = false
    const item = [publicCall(shape, { arguments: callArguments, ...outcome })]
    // Findings are content; a run without findings is not an answer yet, and costs nothing (contract 16.12).
    if ('failure' in result) this.#writer.note(item)
    else void this.#writer.write(item)
  }

  /** Records that no run was possible. */
  refuse(reason: FailureReason): void {
    this.#refused ??= reason
  }

  /** Adds the encrypted value that the caller is to send back to the reply's reasoning. */
  attachSealed(sealed: string | undefined): void {
    this.#writer.attachSealed(sealed)
  }

  /** Records that a question waits for the caller's tools. */
  defer(): void {
    this.#isWaiting = true
  }

  /** Ends a complete answer. */
  end(usage: Usage, reason: FinishReason): void {
    this.#writer.end(usage, reason, { fusion: this.#report() })
  }

  #report(): JsonObject {
    const last = this.#last
    const { mode } = this.#settings
    if (last === undefined) {
      const reason = this.#isWaiting ? 'waiting_for_tools' : (this.#refused ?? 'not_called')
      return { ran: false, reason, mode }
    }
    const found = 'failure' in last ? { failure_reason: last.failure } : last.report
    return { ran: true, runs: this.#runs, reason: this.#reason, mode, ...found }
  }

  #apart(event: Extract<AnswerEvent, { type: 'text' }>): AnswerEvent {
    const isApart = this.#isNewTurn && this.#isWithinText && !event.text.startsWith('\n')
    this.#isNewTurn = false
    this.#isWithinText = !event.text.endsWith('\n')
    return isApart ? { ...event, text: `\n\n${event.text}` } : event
  }
}

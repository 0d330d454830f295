import type { AnswerEvent, FinishReason, JsonObject, Usage } from '../../domain/conversation.ts'
import type { FusedSurface } from '../fused-answer.ts'
import type { DeliberationListener } from '../fusion/deliberate.ts'
import { Outlet } from '../fusion/outlet.ts'
import { progress } from '../fusion/prompts.ts'
import { publicCall } from '../fusion/report.ts'
import type { FusionSettings } from '../fusion/settings.ts'
import type { Questions } from './questions.ts'
import type { FailureReason, RunResult } from './runs.ts'

/** Why the tool ran: called by the model, or a reason to run before the model was called. */
export type RunReason = 'called' | 'always' | 'forced' | 'deferred' | 'no_tool_support'

/**
 * Writes everything that the caller sees of an answer with the fusion tool: the reply, its progress, and the report.
 */
export class Telling {
  readonly #surface: FusedSurface
  readonly #settings: FusionSettings
  readonly #outlet: Outlet
  #reason: RunReason | undefined
  #runs = 0
  #last: RunResult | undefined
  #isWaiting = false
  #refused: FailureReason | undefined
  /** Whether the last reply ended within a line that the next one would continue. */
  #isWithinText = false
  #isNewTurn = false

  constructor(surface: FusedSurface, settings: FusionSettings) {
    const { context, port, signal } = surface
    this.#surface = surface
    this.#settings = settings
    this.#outlet = new Outlet({
      port,
      caller: signal,
      tellsProgress: settings.tellsProgress && context.conversation.stream && settings.resultItem !== 'none',
      tellsBetween: true,
    })
  }

  begin(): void {
    this.#outlet.begin()
  }

  close(): void {
    this.#outlet.close()
  }

  /** Reports the progress of a run. */
  get listener(): DeliberationListener & { onBegin(asked: number): void } {
    const tell = (text: string): void => {
      this.#outlet.tell(text)
      // A reasoning item of its own ends the text before it, except in chat, which has one text for the whole answer.
      if (this.#surface.request.format !== 'openai-chat') this.#isWithinText = false
    }
    return {
      onBegin: (asked) => tell(progress.asked(asked)),
      onAnswer: (answered, asked) => tell(progress.answered(answered, asked)),
      onCompared: (disagreements) => tell(progress.compared(disagreements)),
    }
  }

  /** Marks the start of another reply of the model. */
  turn(): void {
    this.#isNewTurn = true
  }

  /** Passes on the model's events. The promise, if any, resolves when the reader has caught up. */
  say(events: readonly AnswerEvent[]): Promise<void> | undefined {
    return this.#outlet.say(events.map((event) => (event.type === 'text' ? this.#apart(event) : event)))
  }

  /** Writes a whole text that did not come from a reply of the model. */
  sayAll(text: string): Promise<void> {
    this.#isNewTurn = true
    return this.#outlet.sayAll(this.#isWithinText ? `\n\n${text}` : text)
  }

  /** Records a finished run, and shows it if the caller's format has items for it. */
  ran(reason: RunReason, questions: Questions | undefined, result: RunResult): void {
    this.#reason ??= reason
    this.#runs += 1
    this.#last = result
    const { resultItem } = this.#settings
    if (this.#surface.request.format !== 'openai-responses' || resultItem === 'none' || resultItem === 'reasoning')
      return
    const shape = resultItem === 'native' ? 'native' : 'mcp_call'
    const callArguments: JsonObject = questions === undefined ? {} : { ...questions }
    const outcome =
      'failure' in result
        ? { result: {}, error: result.failure }
        : { result: { status: 'ok', ...result.report }, error: undefined }
    this.#isWithinText = false
    const item = [publicCall(shape, { arguments: callArguments, ...outcome })]
    // Findings are content; a run without findings is not an answer yet, and costs nothing (contract 16.12).
    if ('failure' in result) this.#outlet.note(item)
    else void this.#outlet.say(item)
  }

  /** Records that no run was possible. */
  refuse(reason: FailureReason): void {
    this.#refused ??= reason
  }

  /** Adds the encrypted value that the caller is to send back to the reply's reasoning. */
  seal(sealed: string | undefined): void {
    this.#outlet.seal(sealed)
  }

  /** Records that a question waits for the caller's tools. */
  defer(): void {
    this.#isWaiting = true
  }

  /** Ends a complete answer. */
  end(usage: Usage, reason: FinishReason): void {
    this.#outlet.end(usage, reason, { fusion: this.#report() })
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

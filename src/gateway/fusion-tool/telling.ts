import type { AnswerEvent, FinishReason, JsonObject, Usage } from '../../domain/conversation.ts'
import type { FusedSurface } from '../fused-answer.ts'
import type { DeliberationListener } from '../fusion/deliberate.ts'
import { Outlet } from '../fusion/outlet.ts'
import { progress } from '../fusion/prompts.ts'
import { publicCall } from '../fusion/report.ts'
import type { FusionSettings } from '../fusion/settings.ts'
import type { Questions } from './questions.ts'
import type { FailureReason, RunResult } from './runs.ts'

/** Why something was deliberated about before the model was asked, or by whom it was asked for. */
export type RunReason = 'called' | 'always' | 'forced' | 'deferred' | 'no_tool_support'

/** All that the caller is told of an answer for which the tool is there: the reply, how far it is, and how it came about. */
export class Telling {
  readonly #surface: FusedSurface
  readonly #settings: FusionSettings
  readonly #outlet: Outlet
  #reason: RunReason | undefined
  #runs = 0
  #last: RunResult | undefined
  #isWaiting = false
  #refused: FailureReason | undefined
  /** Whether the last turn ended within a line of text that the next one would go on. */
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

  /** How far a run is. */
  get listener(): DeliberationListener & { onBegin(asked: number): void } {
    const tell = (text: string): void => {
      this.#outlet.tell(text)
      // A thought of its own ends the text before it, but on chat, which has one text for all of an answer.
      if (this.#surface.request.format !== 'openai-chat') this.#isWithinText = false
    }
    return {
      onBegin: (asked) => tell(progress.asked(asked)),
      onAnswer: (answered, asked) => tell(progress.answered(answered, asked)),
      onCompared: (disagreements) => tell(progress.compared(disagreements)),
    }
  }

  /** A turn of the model begins. */
  turn(): void {
    this.#isNewTurn = true
  }

  /** Passes on what the model says. The promise, where there is one, ends when the reader has caught up. */
  say(events: readonly AnswerEvent[]): Promise<void> | undefined {
    return this.#outlet.say(events.map((event) => (event.type === 'text' ? this.#apart(event) : event)))
  }

  /** Says a whole text that no turn of the model gave. */
  sayAll(text: string): Promise<void> {
    this.#isNewTurn = true
    return this.#outlet.sayAll(this.#isWithinText ? `\n\n${text}` : text)
  }

  /** Notes a run that has ended, and shows it where the caller's format has items for it. */
  ran(reason: RunReason, questions: Questions | undefined, result: RunResult): void {
    this.#reason ??= reason
    this.#runs += 1
    this.#last = result
    const { resultItem } = this.#settings
    if (this.#surface.request.format !== 'openai-responses' || resultItem === 'none' || resultItem === 'reasoning')
      return
    const shape = resultItem === 'native' ? 'native' : 'mcp_call'
    const asked: JsonObject = questions === undefined ? {} : { ...questions }
    const outcome =
      'failure' in result
        ? { result: {}, error: result.failure }
        : { result: { status: 'ok', ...result.report }, error: undefined }
    this.#isWithinText = false
    const item = [publicCall(shape, { arguments: asked, ...outcome })]
    // What was found is content; that nothing was found is no answer yet, and costs nothing (contract 16.12).
    if ('failure' in result) this.#outlet.note(item)
    else void this.#outlet.say(item)
  }

  /** Notes that nothing could be run at all. */
  refuse(reason: FailureReason): void {
    this.#refused ??= reason
  }

  /** Puts into the reply's reasoning what the caller is to send back sealed. */
  seal(sealed: string | undefined): void {
    this.#outlet.seal(sealed)
  }

  /** Notes that a question waits for the caller's tools. */
  defer(): void {
    this.#isWaiting = true
  }

  /** Ends an answer that is complete. */
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

import type { FusionMode } from '../../domain/fusion-record.ts'
import type { FinishReason, Json } from '../../domain/conversation.ts'
import { ServiceError } from '../../domain/errors.ts'
import { deliberate, notesFrom, type Deliberation } from './deliberate.ts'
import { memoOf } from './digest.ts'
import { mergeJson, type MergedJson } from './merge-json.ts'
import { rankByMedoid } from './medoid.ts'
import { outcomeOf, nobodyAnswered, type Answered, type FusionOutcome } from './outcome.ts'
import { Outlet } from './outlet.ts'
import { failedMembers, type PanelAnswer } from './panel.ts'
import type { FusionMember, FusionPort } from './ports.ts'
import { progress } from './prompts.ts'
import { FusionRun, type FusionRequest } from './run.ts'
import { fitsSchema } from './schema-fit.ts'
import { withCaution, withNotes, writerRequest, type Notes } from './synthesis-request.ts'
import { writeLive } from './write-live.ts'

/** Models that are asked one after the other where the panel gave nothing (contract 7.5). */
const maxFallbacks = 3

/**
 * Answers one user turn by deliberation: a panel, a judge, and one answer that is adopted or written from what they
 * found; down to the answer of whoever is left. The answer leaves through `port.emit` and always
 * ends: with `finish`, or without it where the outcome holds an error. Once the caller's signal is aborted everything
 * under way is closed at once.
 * @throws ServiceError `invalid_request` before anything is asked or emitted; anything else that is thrown is a bug
 */
export async function fuse(request: FusionRequest, port: FusionPort, signal: AbortSignal): Promise<FusionOutcome> {
  using run = new FusionRun(request, port, signal)
  // A whole answer is read when all is over: what was said while it was waited for would only stand in it.
  const tellsProgress = request.settings.tellsProgress && request.conversation.stream
  const outlet = new Outlet({ port, caller: signal, tellsProgress })
  try {
    return await new Fusion(run, outlet).answer()
  } finally {
    outlet.close()
  }
}

/** Structured answers put together, as text. */
interface MergedAnswer extends MergedJson {
  readonly text: string
  readonly truncated: boolean
}

/** The course of one fusion, from the first event to the last. */
class Fusion {
  readonly #run: FusionRun
  readonly #outlet: Outlet
  /** Whether the answer is kept back until it is complete: it is not streamed, or its form has to be checked. */
  readonly #isHeld: boolean

  constructor(run: FusionRun, outlet: Outlet) {
    this.#run = run
    this.#outlet = outlet
    this.#isHeld = !run.request.conversation.stream || this.#wantsJson
  }

  async answer(): Promise<FusionOutcome> {
    const run = this.#run
    const outlet = this.#outlet
    outlet.begin()
    outlet.tell(progress.asked(run.plan.slots.length))
    const deliberation = await deliberate(run, {
      onAnswer: (answered, asked) => outlet.tell(progress.answered(answered, asked)),
      onCompared: (disagreements) => outlet.tell(progress.compared(disagreements)),
    })
    const answered: Answered = run.isCallerGone ? {} : await this.#answerFrom(deliberation)
    if (run.signal.aborted && !run.isCallerGone) run.degrade('deadline')
    return outcomeOf(run, answered, deliberation)
  }

  async #answerFrom(deliberation: Deliberation): Promise<Answered> {
    const { panel, decision, analyses } = deliberation
    if (panel.answers.length === 0) return this.#answerWithoutPanel(panel.refusals)
    const best = this.#bestOf(deliberation)
    // Only the final model has the caller's tools: what the others wrote cannot stand for a call.
    const needsTools = this.#hasTools
    const asItIs = needsTools || !this.#hasForm(best.text) ? undefined : modeOfUnchanged(deliberation, best)
    if (asItIs !== undefined) return this.#adopt(asItIs, best)
    const merged = decision?.verdict === 'insufficient' ? undefined : this.#merge(deliberation)
    if (merged?.disputed === 0 && !needsTools) return this.#adopt('merged', merged)
    if (this.#run.remainingMs > 0) {
      const written = await this.#write(deliberation, merged)
      if (written !== undefined) return written
      if (this.#run.isCallerGone) return {}
      this.#run.degrade('synthesis_failed')
    }
    if (merged !== undefined) return this.#adopt('merged', merged)
    const mode = panel.answers.length === 1 ? 'single' : analyses.length > 0 ? 'adopted' : 'medoid'
    return this.#adopt(mode, best)
  }

  /** Has the final model write the reply; undefined where nothing of one was said. */
  async #write(deliberation: Deliberation, merged: MergedAnswer | undefined): Promise<Answered | undefined> {
    const run = this.#run
    const member = this.#writers(failedMembers(deliberation.panel))[0]
    if (member === undefined) return undefined
    const plain = writerRequest(run.request.conversation, !this.#isHeld, run.book.isCapped)
    const notes = notesFrom(deliberation)
    const conversation = notes === undefined ? withCaution(plain) : withNotes(plain, member, notes)
    this.#remember(member, notes)
    const mend = (text: string): string | undefined => this.#mend(text, merged)
    const writing = {
      run,
      outlet: this.#outlet,
      member,
      role: 'synthesis' as const,
      conversation,
      fence: deliberation.fence,
    }
    const { end, finish } = await writeLive({ ...writing, isHeld: this.#isHeld, mend })
    if (end.status === 'unaffordable') run.degrade('cost_cap')
    if (!this.#outlet.hasContent) return undefined
    const mode = notes === undefined ? 'restarted' : 'synthesised'
    return finish === undefined ? this.#broken(mode) : this.#end(mode, finish)
  }

  /** Nobody of the panel answered: one model after the other is asked as if there were no fusion. */
  async #answerWithoutPanel(refusals: readonly string[]): Promise<Answered> {
    const run = this.#run
    const [refusal] = refusals
    if (refusal !== undefined) {
      await this.#outlet.sayAll(refusal, 'refusal')
      return this.#end('refused', 'stop')
    }
    run.degrade('panel_failed')
    const failed = new Set(run.book.records.map(({ member }) => member))
    const conversation = writerRequest(run.request.conversation, !this.#isHeld, run.book.isCapped)
    for (const member of this.#writers(failed).slice(0, maxFallbacks)) {
      if (run.signal.aborted) break
      this.#remember(member)
      const writing = { run, outlet: this.#outlet, member, role: 'fallback' as const, conversation }
      const { end, finish } = await writeLive({ ...writing, isHeld: this.#isHeld })
      if (end.status === 'unaffordable') run.degrade('cost_cap')
      if (this.#outlet.hasContent)
        return finish === undefined ? this.#broken('fallback') : this.#end('fallback', finish)
    }
    return { error: nobodyAnswered(run) }
  }

  /** Where the caller's tools are attached their results come next: whoever writes now is asked again then, with the findings. */
  #remember({ id }: FusionMember, notes?: Notes): void {
    const { port, request } = this.#run
    if (request.conversation.tools.length > 0) this.#outlet.seal(port.remember?.(memoOf(id, notes)))
  }

  /** Sends one answer of the panel as it is. */
  async #adopt(mode: FusionMode, { text, truncated }: Pick<PanelAnswer, 'text' | 'truncated'>): Promise<Answered> {
    await this.#outlet.sayAll(text)
    return this.#end(mode, truncated ? 'length' : 'stop')
  }

  #end(mode: FusionMode, finish: FinishReason): Answered {
    const { book, request } = this.#run
    const modelOf = (id: string): string | undefined => request.members.find((member) => member.id === id)?.model
    this.#outlet.end(book.usageInParts(request.settings.namesModels ? modelOf : undefined), finish)
    return { mode }
  }

  /** Part of an answer is out and the rest does not come: that is said, and never hidden (contract 10). */
  #broken(mode: FusionMode): Answered {
    this.#run.degrade('synthesis_broken')
    return { mode, error: new ServiceError('upstream_broken') }
  }

  /** The best answer that can be sent as it is: by the judge where there was one, of the form that was asked for if any has it. */
  #bestOf({ panel, decision }: Deliberation): PanelAnswer {
    const ranked =
      decision === undefined
        ? rankByMedoid(panel.answers, (text) => this.#hasForm(text))
        : decision.ranking.map(({ candidate }) => candidate.answer)
    return ranked.find(({ text, truncated }) => !truncated && this.#hasForm(text)) ?? ranked[0]!
  }

  /** Who writes, in the order of asking: those who failed in this fusion last. */
  #writers(failed: ReadonlySet<string>): FusionMember[] {
    const { writers } = this.#run.plan
    const isFailed = ({ id }: FusionMember): boolean => failed.has(id)
    return [...writers.filter((member) => !isFailed(member)), ...writers.filter(isFailed)]
  }

  /**
   * Structured answers put together field by field, the judge's or the medoid's best first; undefined where there are not
   * two, or where what comes of them has not the form that was asked for.
   */
  #merge({ panel, decision }: Deliberation): MergedAnswer | undefined {
    if (!this.#wantsJson) return undefined
    const ranked = decision?.ranking.filter(({ isFlagged }) => !isFlagged)
    const heard =
      ranked?.flatMap(({ candidate: { answer, twins }, total }) =>
        [answer, ...twins].map((one) => ({ ...one, weight: total })),
      ) ?? rankByMedoid(panel.answers).map((one) => ({ ...one, weight: one.member.quality }))
    const merged = mergeJson(
      heard.flatMap(({ text, truncated, member, weight }) => {
        const value = truncated ? undefined : this.#read(text)
        // Whatever was heard has a say, however small.
        return value === undefined ? [] : [{ value, family: member.family, weight: Math.max(weight, Number.EPSILON) }]
      }),
    )
    const text = JSON.stringify(merged?.value)
    return merged === undefined || !this.#hasForm(text) ? undefined : { ...merged, text, truncated: false }
  }

  /** A written answer as it may be sent: of the form that was asked for, with what was settled before in its place. */
  #mend(text: string, merged: MergedAnswer | undefined): string | undefined {
    if (!this.#wantsJson) return text
    const value = this.#read(text)
    if (value === undefined) return undefined
    const settled = JSON.stringify(merged?.settle(value) ?? value)
    // What the writer wrote stays byte for byte where nothing had to be put in its place.
    return settled !== JSON.stringify(value) && this.#hasForm(settled) ? settled : text
  }

  #hasForm(text: string): boolean {
    return !this.#wantsJson || this.#read(text) !== undefined
  }

  /** The text as JSON; undefined where it is none or not of the caller's schema. */
  #read(text: string): Json | undefined {
    const { outputFormat } = this.#run.request.conversation
    try {
      const value = JSON.parse(text) as Json
      const isFit = outputFormat?.type !== 'json_schema' || fitsSchema(value, outputFormat.schema)
      return isFit ? value : undefined
    } catch {
      // A model that was asked for JSON and wrote something else: its answer does not count as one.
      return undefined
    }
  }

  get #wantsJson(): boolean {
    const type = this.#run.request.conversation.outputFormat?.type
    return type === 'json_object' || type === 'json_schema'
  }

  get #hasTools(): boolean {
    const { tools, toolChoice } = this.#run.request.conversation
    return tools.length > 0 && toolChoice?.type !== 'none'
  }
}

/** Why one answer is sent as it is, without a writer; undefined where that is not so. */
function modeOfUnchanged({ panel, areAgreed, decision }: Deliberation, best: PanelAnswer): FusionMode | undefined {
  if (panel.answers.length === 1) return 'single'
  if (areAgreed) return 'agreed'
  const isChosen = decision?.ranking[0]?.candidate.answer === best
  return decision?.verdict === 'adopt' && isChosen ? 'adopted' : undefined
}

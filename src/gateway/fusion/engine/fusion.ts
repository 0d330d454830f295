import type { FinishReason } from '../../../domain/conversation.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { FusionMode } from '../../../domain/fusion-record.ts'
import type { Json } from '../../../domain/json.ts'
import { mergeJson, type MergedJson } from './answer/merge-json.ts'
import { fitsSchema } from './answer/schema-fit.ts'
import { withCaution, withNotes, writerRequest, type Notes } from './answer/synthesis-request.ts'
import { writeAnswer } from './answer/write-answer.ts'
import { deliberate, notesFrom, type Deliberation } from './deliberate.ts'
import { memoOf } from './digest.ts'
import { EventWriter } from './event-writer.ts'
import { FusionRun, type FusionRequest } from './fusion-run.ts'
import { outcomeOf, panelFailedError, refusedError, type AnswerSummary, type FusionOutcome } from './outcome.ts'
import { rankByMedoid } from './panel/medoid.ts'
import { failedMembers, type PanelAnswer, type PanelResult } from './panel/panel.ts'
import type { FusionMember, FusionPort } from './ports.ts'
import { progress } from './prompts.ts'

/** Models to try one after another if the panel returned nothing (contract 7.5). */
const maxFallbacks = 3

/**
 * Answers one user turn by deliberation: a panel, a judge, and one answer that is adopted or written from their
 * findings, falling back to any model that is left (contract 15.4). Writes the answer through `port.emit`, which always
 * ends: with `finish`, or without it if the outcome holds an error. When the caller's signal is aborted, all running
 * calls are closed at once.
 * @throws ServiceError `invalid_request` before anything is called or emitted; any other error is a bug
 */
export async function fuse(request: FusionRequest, port: FusionPort, signal: AbortSignal): Promise<FusionOutcome> {
  using run = new FusionRun(request, port, signal)
  // A whole answer is read at the end, so progress would only become part of it.
  const streamsProgress = request.settings.streamsProgress && request.conversation.stream
  const eventWriter = new EventWriter({ port, caller: signal, streamsProgress })
  try {
    return await new Fusion(run, eventWriter).answer()
  } finally {
    eventWriter.close()
  }
}

/** Merged structured answers, as text. */
interface MergedAnswer extends MergedJson {
  readonly text: string
  readonly truncated: boolean
}

/** Runs one fusion, from the first event to the last. */
class Fusion {
  readonly #run: FusionRun
  readonly #writer: EventWriter
  /** Whether the answer is buffered until it is complete: it is not streamed, or its format has to be checked. */
  readonly #isHeld: boolean

  constructor(run: FusionRun, writer: EventWriter) {
    this.#run = run
    this.#writer = writer
    this.#isHeld = !run.request.conversation.stream || this.#wantsJson
  }

  async answer(): Promise<FusionOutcome> {
    const run = this.#run
    const eventWriter = this.#writer
    eventWriter.begin()
    eventWriter.reportProgress(progress.asked(run.plan.slots.length))
    const deliberation = await deliberate(run, {
      onAnswer: (answered, asked) => eventWriter.reportProgress(progress.answered(answered, asked)),
      onCompared: (disagreements) => eventWriter.reportProgress(progress.compared(disagreements)),
    })
    const answered: AnswerSummary = run.isClientDisconnected ? {} : await this.#answerFrom(deliberation)
    if (run.signal.aborted && !run.isClientDisconnected) run.degrade('deadline')
    return outcomeOf(run, answered, deliberation)
  }

  async #answerFrom(deliberation: Deliberation): Promise<AnswerSummary> {
    const { panel, decision, analyses } = deliberation
    if (panel.answers.length === 0) return this.#answerWithoutPanel(panel)
    const best = this.#bestOf(deliberation)
    // Only the final model has the caller's tools, so a panel answer cannot replace a tool call (contract 15.8).
    const needsTools = this.#hasTools
    const asItIs = needsTools || !this.#hasForm(best.text) ? undefined : modeOfUnchanged(deliberation, best)
    if (asItIs !== undefined) return this.#adopt(asItIs, best)
    const merged = decision?.verdict === 'insufficient' ? undefined : this.#merge(deliberation)
    if (merged?.disputed === 0 && !needsTools) return this.#adopt('merged', merged)
    if (this.#run.remainingMs > 0) {
      const written = await this.#write(deliberation, merged)
      if (written !== undefined) return written
      if (this.#run.isClientDisconnected) return {}
      this.#run.degrade('synthesis_failed')
    }
    if (merged !== undefined) return this.#adopt('merged', merged)
    const mode = panel.answers.length === 1 ? 'single' : analyses.length > 0 ? 'adopted' : 'medoid'
    return this.#adopt(mode, best)
  }

  /** Has the final model write the reply; undefined if it wrote nothing. */
  async #write(deliberation: Deliberation, merged: MergedAnswer | undefined): Promise<AnswerSummary | undefined> {
    const run = this.#run
    const member = this.#writers(failedMembers(deliberation.panel))[0]
    if (member === undefined) return undefined
    const plain = writerRequest(run.request.conversation, !this.#isHeld, run.costs.isCapped)
    const notes = notesFrom(deliberation)
    const conversation = notes === undefined ? withCaution(plain) : withNotes(plain, member, notes)
    this.#remember(member, notes)
    const repair = (text: string): string | undefined => this.#repair(text, merged)
    const writing = {
      run,
      writer: this.#writer,
      member,
      role: 'synthesis' as const,
      conversation,
      fence: deliberation.fence,
    }
    const { end, finish } = await writeAnswer({ ...writing, isHeld: this.#isHeld, repair })
    if (end.status === 'unaffordable') run.degrade('cost_cap')
    if (!this.#writer.hasContent) return undefined
    const mode = notes === undefined ? 'restarted' : 'synthesised'
    return finish === undefined ? this.#broken(mode) : this.#end(mode, finish)
  }

  /** Called if no panel member answered: tries one model after another, as without fusion. */
  async #answerWithoutPanel({ refusals, isRejected }: PanelResult): Promise<AnswerSummary> {
    const run = this.#run
    if (refusals.length > 0) return this.#refuse(refusals)
    // As without fusion: no other model is asked after a refusal (contract 7.29).
    if (isRejected) return { error: refusedError() }
    run.degrade('panel_failed')
    const failed = new Set(run.costs.records.map(({ member }) => member))
    const conversation = writerRequest(run.request.conversation, !this.#isHeld, run.costs.isCapped)
    for (const member of this.#writers(failed).slice(0, maxFallbacks)) {
      if (run.signal.aborted) break
      this.#remember(member)
      const writing = { run, writer: this.#writer, member, role: 'fallback' as const, conversation }
      const { end, finish } = await writeAnswer({ ...writing, isHeld: this.#isHeld })
      if (end.status === 'unaffordable') run.degrade('cost_cap')
      if (this.#writer.hasContent)
        return finish === undefined ? this.#broken('fallback') : this.#end('fallback', finish)
      if (end.status === 'refused') return this.#refuse([end.refusal])
      if (end.refused) return { error: refusedError() }
    }
    return { error: panelFailedError(run) }
  }

  /** Ends with a refusal: in a model's words if there are any. */
  async #refuse(refusals: readonly string[]): Promise<AnswerSummary> {
    const text = refusals.find((refusal) => refusal !== '')
    if (text === undefined) return this.#end('refused', 'content_filter')
    await this.#writer.writeAll(text, 'refusal')
    return this.#end('refused', 'stop')
  }

  /**
   * With the caller's own tools attached, a later request will bring their results: the same writer gets it, with the
   * findings.
   */
  #remember({ id }: FusionMember, notes?: Notes): void {
    const { port, request } = this.#run
    if (request.conversation.tools.length > 0) this.#writer.attachSealed(port.remember?.(memoOf(id, notes)))
  }

  /** Sends one panel answer unchanged. */
  async #adopt(mode: FusionMode, { text, truncated }: Pick<PanelAnswer, 'text' | 'truncated'>): Promise<AnswerSummary> {
    await this.#writer.writeAll(text)
    return this.#end(mode, truncated ? 'length' : 'stop')
  }

  #end(mode: FusionMode, finish: FinishReason): AnswerSummary {
    const { costs, request } = this.#run
    const modelOf = (id: string): string | undefined => request.members.find((member) => member.id === id)?.model
    this.#writer.end(costs.usageInParts(request.settings.namesModels ? modelOf : undefined), finish)
    return { mode }
  }

  /** Ends an answer with an error because only part of it could be sent (contract 10). */
  #broken(mode: FusionMode): AnswerSummary {
    this.#run.degrade('synthesis_broken')
    return { mode, error: new ServiceError('upstream_broken') }
  }

  /**
   * The best answer that can be sent unchanged: the judge's choice if there is one, and in the requested format if
   * any is.
   */
  #bestOf({ panel, decision }: Deliberation): PanelAnswer {
    const ranked =
      decision === undefined
        ? rankByMedoid(panel.answers, (text) => this.#hasForm(text))
        : decision.ranking.map(({ candidate }) => candidate.answer)
    return ranked.find(({ text, truncated }) => !truncated && this.#hasForm(text)) ?? ranked[0]!
  }

  /** The writers in order; members that failed in this fusion are last. */
  #writers(failed: ReadonlySet<string>): FusionMember[] {
    const { writers } = this.#run.plan
    const isFailed = ({ id }: FusionMember): boolean => failed.has(id)
    return [...writers.filter((member) => !isFailed(member)), ...writers.filter(isFailed)]
  }

  /**
   * Merges structured answers field by field, with the judge's or the medoid's best first; undefined if there are
   * fewer than two, or if the result does not have the requested format.
   */
  #merge({ panel, decision }: Deliberation): MergedAnswer | undefined {
    if (!this.#wantsJson) return undefined
    const ranked = decision?.ranking.filter(({ isFlagged }) => !isFlagged)
    const weighted =
      ranked?.flatMap(({ candidate: { answer, duplicates }, total }) =>
        [answer, ...duplicates].map((one) => ({ ...one, weight: total })),
      ) ?? rankByMedoid(panel.answers).map((one) => ({ ...one, weight: one.member.quality }))
    const merged = mergeJson(
      weighted.flatMap(({ text, truncated, member, weight }) => {
        const value = truncated ? undefined : this.#read(text)
        // Every answer counts, however little.
        return value === undefined ? [] : [{ value, family: member.family, weight: Math.max(weight, Number.EPSILON) }]
      }),
    )
    const text = JSON.stringify(merged?.value)
    return merged === undefined || !this.#hasForm(text) ? undefined : { ...merged, text, truncated: false }
  }

  /** A written answer in the form in which it may be sent: in the requested format, with settled values inserted. */
  #repair(text: string, merged: MergedAnswer | undefined): string | undefined {
    if (!this.#wantsJson) return text
    const value = this.#read(text)
    if (value === undefined) return undefined
    const settled = JSON.stringify(merged?.settle(value) ?? value)
    // The writer's text stays byte for byte if no value had to be inserted.
    return settled !== JSON.stringify(value) && this.#hasForm(settled) ? settled : text
  }

  #hasForm(text: string): boolean {
    return !this.#wantsJson || this.#read(text) !== undefined
  }

  /** The text as JSON; undefined if it is invalid or does not match the caller's schema. */
  #read(text: string): Json | undefined {
    const { outputFormat } = this.#run.request.conversation
    try {
      const value = JSON.parse(text) as Json
      const isFit = outputFormat?.type !== 'json_schema' || fitsSchema(value, outputFormat.schema)
      return isFit ? value : undefined
    } catch {
      // A model that was asked for JSON returned something else: its answer does not count.
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

/** Why one answer is sent unchanged, without a writer; undefined if it is not. */
function modeOfUnchanged({ panel, areAgreed, decision }: Deliberation, best: PanelAnswer): FusionMode | undefined {
  if (panel.answers.length === 1) return 'single'
  if (areAgreed) return 'agreed'
  const isChosen = decision?.ranking[0]?.candidate.answer === best
  return decision?.verdict === 'adopt' && isChosen ? 'adopted' : undefined
}

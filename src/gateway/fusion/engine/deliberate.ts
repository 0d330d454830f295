import type { Notes } from './answer/synthesis-request.ts'
import { buildCandidates, type Candidate } from './candidates.ts'
import { buildFence, type Fence } from './fence.ts'
import type { FusionRun } from './fusion-run.ts'
import type { Analysis } from './judge/analysis.ts'
import { judgeCandidates } from './judge/judge.ts'
import { decide, forWriter, type Decision } from './judge/rank-candidates.ts'
import { doAgree } from './panel/medoid.ts'
import { PanelRequests } from './panel/panel-request.ts'
import { abortedMembers, failedMembers, runPanel, type PanelResult } from './panel/panel.ts'
import { permute } from './seeded-random.ts'
import { transcriptOf } from './transcript.ts'

/** The result of panel and judge. In memory only; the labels mean nothing elsewhere. */
export interface Deliberation {
  readonly panel: PanelResult
  readonly candidates: readonly Candidate[]
  readonly analyses: readonly Analysis[]
  /** Absent if there was no judge. */
  readonly decision: Decision | undefined
  /** Whether no judge was needed because all answers agree. */
  readonly areAgreed: boolean
  readonly fence: Fence
  readonly judgeMs: number
}

/** Receives progress, to be reported to the caller. */
export interface DeliberationListener {
  onAnswer(answered: number, asked: number): void
  onCompared(disagreements: number): void
}

/**
 * Asks the panel and has its answers compared. Fewer than two answers are not compared. Who writes the reply is not
 * decided here: a fusion request has the final model write it, the fusion tool returns the findings to the calling
 * model.
 */
export async function deliberate(run: FusionRun, listener: DeliberationListener): Promise<Deliberation> {
  const { conversation, settings } = run.request
  const { port, costs, plan, signal } = run
  const [writer] = plan.writers
  const shown = settings.panelSize * settings.maxPanelTokens
  // The judge's answer is shorter than the writer's may be, so its worst-case cost is at most the writer's.
  const writingUsd = writer === undefined ? 0 : costs.worstUsd(writer, conversation, shown)
  const requests = new PanelRequests(conversation, settings)
  const asked = plan.slots.length
  const onAnswer = (answered: number): void => listener.onAnswer(answered, asked)
  const panel = await runPanel({ port, costs, plan, settings, requests, keepUsd: 2 * writingUsd, signal, onAnswer })
  if (panel.answers.length < panel.asked) run.degrade('member_lost')
  if (panel.answers.length < panel.quorum) run.degrade('below_quorum')
  if (panel.dropOuts.some(({ why }) => why === 'unaffordable')) run.degrade('cost_cap')
  const candidates = buildCandidates(permute(panel.answers, run.random))
  const transcript = transcriptOf(conversation)
  const quoted = [transcript, settings.criteria ?? '', ...candidates.map(({ text }) => text)]
  const fence = buildFence(quoted, port.random)
  const found = { panel, candidates, fence }
  const unjudged = { ...found, analyses: [], decision: undefined, judgeMs: 0 }
  if (panel.answers.length < 2) return { ...unjudged, areAgreed: false }
  if (settings.agreementIsEnough && doAgree(panel.answers)) return { ...unjudged, areAgreed: true }
  const beganMs = port.clock.monotonicMs()
  const quotedTranscript = fence.quote('conversation', transcript)
  const judging = {
    run,
    candidates,
    fence,
    transcript: quotedTranscript,
    failed: failedMembers(panel),
    aborted: abortedMembers(panel),
    keepUsd: writingUsd,
  }
  const analyses = await judgeCandidates(judging)
  const judgeMs = Math.round(port.clock.monotonicMs() - beganMs)
  if (analyses.length > 0) listener.onCompared(analyses[0]!.contradictions.length)
  const decision = analyses.length === 0 ? undefined : decide(candidates, analyses)
  return { ...found, analyses, decision, areAgreed: false, judgeMs }
}

/** The notes for the writer of the reply; undefined if no answer can be trusted. */
export function notesFrom({ candidates, decision, analyses, fence }: Deliberation): Notes | undefined {
  if (decision?.verdict === 'insufficient') return undefined
  const shown = decision === undefined ? candidates : forWriter(decision.ranking)
  return { candidates: shown, analysis: analyses[0], fence }
}

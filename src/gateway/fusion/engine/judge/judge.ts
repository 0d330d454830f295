import type { AssistantPart, Conversation, InputPart, Turn } from '../../../../domain/conversation.ts'
import type { CallRole } from '../../../../domain/fusion-record.ts'
import { findJsonObject } from '../answer/find-json-object.ts'
import type { Candidate } from '../candidates.ts'
import type { Fence } from '../fence.ts'
import type { FusionRun } from '../fusion-run.ts'
import { outputLimit } from '../measure-conversation.ts'
import { callModel, type ModelCallEnd } from '../model-call.ts'
import { subConversation } from '../panel/panel-request.ts'
import type { FusionMember } from '../ports.ts'
import * as prompts from '../prompts.ts'
import { imagesOf } from '../transcript.ts'
import { analysisFormat } from './analysis-schema.ts'
import { readAnalysis, type Analysis } from './analysis.ts'
import { isClose } from './rank-candidates.ts'

/** The longest comparison, in tokens. */
export const maxAnalysisTokens = 4_096
/** Maximum characters of an unreadable reply that its author gets back to repair it. */
const maxRepeatedCharacters = 16_000
/** Share of the total time to leave for writing; a judge that would need it is not called. */
const writingShare = 0.15
/** A judge with less time than this is not called. */
const leastJudgeMs = 1_000
/** Judges this far below the best, in points of quality, are used only as fallbacks. */
const judgeFloor = 8

export interface JudgeOptions {
  readonly run: FusionRun
  /** In the order in which they are shown. */
  readonly candidates: readonly Candidate[]
  readonly fence: Fence
  /** The quoted conversation. */
  readonly transcript: string
  /** Members that already failed in this fusion. */
  readonly failed: ReadonlySet<string>
  /** Members that were too slow in this fusion. */
  readonly aborted: ReadonlySet<string>
  /** US dollars to leave for writing. */
  readonly keepUsd: number
}

/**
 * Has the candidates compared: by one judge, which may repair an unreadable reply once, then by a judge of another
 * family. Empty if no judge succeeded; several analyses if a close decision was judged again.
 */
export async function judgeCandidates(options: JudgeOptions): Promise<readonly Analysis[]> {
  const { run, candidates, keepUsd } = options
  for (const [index, judge] of chooseJudges(options).entries()) {
    if (index > 0) run.degrade('judge_replaced')
    const first = await askJudge(options, judge, 'judge', candidates)
    // No other judge is asked instead (contract 15.21).
    if (first === 'refused') break
    if (first === undefined) continue
    const { settings } = run.request
    if (!isClose(candidates, first, settings.closeLead) || run.costs.isNearLimit(keepUsd)) return [first]
    const orders = Array.from({ length: settings.extraJudgePasses }, (_, pass) => reorder(candidates, pass))
    const further = await Promise.all(orders.map((shown) => askJudge(options, judge, 'swap', shown)))
    const read = further.filter((analysis) => analysis !== undefined && analysis !== 'refused')
    if (read.length < further.length) run.degrade('second_look_failed')
    return [first, ...read]
  }
  run.degrade('no_analysis')
  return []
}

/** Another order for each further pass: first reversed, then rotated, so that no candidate keeps a good position. */
function reorder(candidates: readonly Candidate[], pass: number): Candidate[] {
  const turn = pass % candidates.length
  return pass === 0 ? candidates.toReversed() : [...candidates.slice(turn), ...candidates.slice(0, turn)]
}

/** The judge's request: the rules are separate, and everything written by others is fenced. */
function writeJudgeRequest(
  { run, fence, transcript }: JudgeOptions,
  judge: FusionMember,
  shown: readonly Candidate[],
): Conversation {
  const { conversation, settings } = run.request
  const lines = [prompts.conversationHeading, transcript]
  if (settings.criteria !== undefined) lines.push(prompts.criteriaHeading, fence.quote('criteria', settings.criteria))
  for (const { label, text, duplicates, isTruncated } of shown) {
    lines.push(prompts.candidateHeading(label, duplicates.length, isTruncated), fence.quote(label, text))
  }
  lines.push(prompts.judgeClosing)
  const images = judge.capabilities?.image_input === true ? imagesOf(conversation) : []
  const parts: InputPart[] = [{ type: 'text', text: lines.join('\n\n') }, ...images]
  const system = prompts.judgePrompt(shown.length, fence.start)
  const turns: Turn[] = [
    { role: 'system', parts: [{ type: 'text', text: system }] },
    { role: 'user', parts },
  ]
  const reasons = judge.capabilities?.reasoning === true
  const { instructions: _, ...hints } = conversation.hints
  return {
    ...subConversation(
      conversation,
      { turns, hints },
      { maxOutputTokens: outputLimit(judge, maxAnalysisTokens), ...(reasons ? {} : { temperature: 0 }) },
    ),
    ...(judge.capabilities?.structured_outputs === true
      ? { outputFormat: analysisFormat(shown.map(({ label }) => label)) }
      : {}),
  }
}

/** One judge's analysis of the candidates, or `refused`; an unreadable reply is repaired once. */
async function askJudge(
  options: JudgeOptions,
  judge: FusionMember,
  role: 'judge' | 'swap',
  shown: readonly Candidate[],
): Promise<Analysis | 'refused' | undefined> {
  const { run, candidates } = options
  const labels = candidates.map(({ label }) => label)
  const request = writeJudgeRequest(options, judge, shown)
  const reply = await call(options, judge, role, request)
  if (reply?.refused === true) return 'refused'
  if (reply?.status !== 'answered') return undefined
  const reading = readReply(reply.text, labels)
  if ('analysis' in reading) return reading.analysis
  const unreadable: AssistantPart = { type: 'text', text: reply.text.slice(0, maxRepeatedCharacters) }
  const ask: InputPart = { type: 'text', text: prompts.repairPrompt(reading.problem) }
  const turns: Turn[] = [...request.turns, { role: 'assistant', parts: [unreadable] }, { role: 'user', parts: [ask] }]
  const repaired = await call(options, judge, 'repair', { ...request, turns })
  if (repaired?.refused === true) return 'refused'
  if (repaired?.status !== 'answered') return undefined
  const again = readReply(repaired.text, labels)
  if (!('analysis' in again)) return undefined
  run.degrade('judge_repaired')
  return again.analysis
}

function readReply(text: string, labels: readonly string[]): ReturnType<typeof readAnalysis> {
  const body = findJsonObject(text)
  return body === undefined ? { problem: 'it holds no JSON object.' } : readAnalysis(body, labels)
}

async function call(
  { run, keepUsd }: JudgeOptions,
  member: FusionMember,
  role: CallRole,
  conversation: Conversation,
): Promise<ModelCallEnd | undefined> {
  const { port, costs, signal, request } = run
  const { judgeMs, totalMs } = request.settings
  const limitMs = Math.min(judgeMs, run.remainingMs - totalMs * writingShare)
  if (limitMs < leastJudgeMs) {
    run.degrade('deadline')
    return undefined
  }
  const end = await callModel({ port, costs, member, call: { role, conversation }, limitMs, keepUsd, signal })
  if (end.status === 'unaffordable') run.degrade('cost_cap')
  return end
}

/**
 * The judges in order: families with the fewest panel answers first, and never the same family twice if there is
 * another.
 */
function chooseJudges({ run: { plan }, candidates, failed, aborted }: JudgeOptions): FusionMember[] {
  const answersByFamily = new Map<string, number>()
  for (const { answer, duplicates } of candidates)
    for (const { member } of [answer, ...duplicates])
      answersByFamily.set(member.family, (answersByFamily.get(member.family) ?? 0) + 1)
  const best = Math.max(...plan.writers.map(({ quality }) => quality))
  const rank = (member: FusionMember): number[] => [
    Number(failed.has(member.id)),
    // The remaining time is not spent on a model that was just too slow.
    Number(aborted.has(member.id)),
    Number(member.quality < best - judgeFloor),
    answersByFamily.get(member.family) ?? 0,
    -member.quality,
  ]
  const order = plan.writers.toSorted((a, b) => {
    const [ofA, ofB] = [rank(a), rank(b)]
    return ofA.map((value, index) => value - ofB[index]!).find((difference) => difference !== 0) ?? 0
  })
  const first = plan.judgeFirst ?? order[0]
  if (first === undefined) return []
  // Without another model that has worked so far, it is better to write without a comparison than to wait for the
  // next failure.
  const others = order.filter((member) => member !== first && !failed.has(member.id) && !aborted.has(member.id))
  const second = others.find(({ family }) => family !== first.family) ?? others[0]
  return second === undefined ? [first] : [first, second]
}

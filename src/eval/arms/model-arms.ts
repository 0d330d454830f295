import type { Conversation } from '../../domain/conversation.ts'
import { CostTracker } from '../../gateway/fusion/engine/cost-tracker.ts'
import { callModel } from '../../gateway/fusion/engine/model-call.ts'
import { PanelRequests, subConversation } from '../../gateway/fusion/engine/panel/panel-request.ts'
import { planFusion, type PlannedSlot } from '../../gateway/fusion/engine/plan.ts'
import type { FusionMember } from '../../gateway/fusion/engine/ports.ts'
import type { FusionSettings } from '../../gateway/fusion/engine/settings.ts'
import { EvaluationStop, type EvalPort } from '../ports.ts'
import type { Recorder, Trace } from '../recorder.ts'
import type { Reply } from './arm-result.ts'

/** Maximum number of samples of one model for one question, however cheap it is. */
export const maxSamples = 9

export interface ModelArmOptions {
  readonly recorder: Recorder
  readonly clock: EvalPort['clock']
  readonly conversation: Conversation
  readonly settings: FusionSettings
  readonly signal: AbortSignal
}

/** The first answer of each member to the same request that fusion sends. @throws EvaluationStop */
export async function askPanel(options: ModelArmOptions, members: readonly FusionMember[]): Promise<Reply[]> {
  const { recorder, conversation, settings } = options
  const { slots } = planFusion({ conversation, members, settings })
  const requests = new PanelRequests(conversation, settings)
  const trace = recorder.trace()
  return Promise.all(
    members.map((member) => {
      const slot: PlannedSlot = slots.find((planned) => planned.member === member) ?? { member, angle: 0 }
      return ask(options, trace, member, requests.requestFor(slot, member))
    }),
  )
}

/**
 * Asks the same model repeatedly, without fusion's prompts, until the cost reaches `budgetUsd`: what its owner could
 * have bought for the price of a fusion. At least once. @throws EvaluationStop
 */
export async function sampleMember(
  options: ModelArmOptions,
  member: FusionMember,
  budgetUsd: number,
): Promise<Reply[]> {
  const { turns, hints, sampling } = options.conversation
  const request = subConversation(options.conversation, { turns, hints }, sampling)
  const trace = options.recorder.trace()
  const replies: Reply[] = []
  let spentUsd = 0
  while (replies.length < maxSamples) {
    const reply = await ask(options, trace, member, request)
    replies.push(reply)
    spentUsd += reply.usd
    // Rounded to the nearest number of samples. A failing member is not asked again and again.
    if (reply.usd === 0 || spentUsd + spentUsd / replies.length / 2 > budgetUsd) break
  }
  return replies
}

async function ask(
  { clock, settings, signal }: ModelArmOptions,
  trace: Trace,
  member: FusionMember,
  conversation: Conversation,
): Promise<Reply> {
  const before = trace.calls.length
  const port = {
    clock,
    random: noRandom,
    emit: (): undefined => undefined,
    callModel: trace.callModel.bind(trace),
  }
  const call = { role: 'panel' as const, conversation }
  const end = await callModel({
    port,
    costs: new CostTracker(undefined),
    member,
    call,
    limitMs: settings.panelMs,
    signal,
  })
  if (trace.stop !== undefined) throw trace.stop
  if (signal.aborted) throw new EvaluationStop('asked')
  const made = trace.calls.slice(before).find((one) => one.member === member.id)
  // The duration of a call without an answer is known, and its cost is in the total.
  return { text: end.status === 'answered' ? end.text : '', ms: made?.ms ?? end.ms, usd: made?.usd ?? 0 }
}

function noRandom(): never {
  throw new Error('a single call uses no random numbers')
}

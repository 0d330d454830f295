import type { AnswerEvent } from '../../src/domain/conversation.ts'
import type { CallRole } from '../../src/domain/fusion-record.ts'
import { UpstreamError } from '../../src/domain/upstream.ts'
import { evaluate, type Evaluation } from '../../src/eval/evaluation.ts'
import type { AnsweredCall, EvalMember, EvalPort, Journal, Kept } from '../../src/eval/ports.ts'
import { makePrice } from '../../src/eval/prices.ts'
import { buildQuestionSet } from '../../src/eval/questions/question-set.ts'
import type { Question } from '../../src/eval/questions/question.ts'
import { textOf } from '../../src/eval/quoted-candidates.ts'
import { buildReport, type Report } from '../../src/eval/report.ts'
import { simulateWorld, type Assumptions, type SimulatedVoice } from '../../src/eval/simulated-world.ts'
import type { FusionMember, SubCall } from '../../src/gateway/fusion/engine/ports.ts'
import { systemClock } from '../../src/runtime/clock.ts'

/** Members of different families; simulated. */
export function membersNamed(...names: readonly string[]): EvalMember[] {
  return names.map((name) => ({
    id: name,
    model: name,
    family: name,
    failureDomain: name,
    quality: 50,
    simulated: true,
    price: makePrice(1, 4),
  }))
}

/** A call as the simulated models saw it. */
export interface SeenCall {
  readonly member: string
  readonly role: CallRole
  readonly request: string
}

/** Simulated models without a network, and their calls. */
export class InProcess implements EvalPort {
  readonly clock = systemClock()
  readonly seen: SeenCall[] = []
  readonly kept = { answered: new Map<string, AnsweredCall>(), spentUsd: 0 }
  best: string | undefined
  /** What happens instead of an answer, if anything. */
  trouble: (member: FusionMember, call: SubCall, nth: number) => UpstreamError | undefined = () => undefined
  readonly #voice: SimulatedVoice

  constructor(voice: SimulatedVoice) {
    this.#voice = voice
  }

  readonly journal: Journal = {
    began: () => {},
    answered: (call) => {
      this.kept.answered.set(call.key, call)
      this.kept.spentUsd += call.usd
    },
    failed: (_, usd) => {
      this.kept.spentUsd += usd
    },
    choseBest: (id) => {
      this.best = id
    },
  }

  callModel(
    member: FusionMember,
    call: SubCall,
    signal: AbortSignal,
  ): AsyncIterable<readonly AnswerEvent[]> | Promise<readonly AnswerEvent[]> {
    const request = textOf(call.conversation)
    this.seen.push({ member: member.id, role: call.role, request })
    const trouble = this.trouble(member, call, this.seen.length)
    const events = (async (): Promise<readonly AnswerEvent[]> => {
      await Promise.resolve()
      if (signal.aborted) throw new UpstreamError('cancelled')
      if (trouble !== undefined) throw trouble
      return said(this.#voice(member.id, request) ?? 'nothing', request)
    })()
    if (!call.conversation.stream) return events
    return (async function* () {
      yield await events
    })()
  }
}

function said(text: string, request: string): readonly AnswerEvent[] {
  const usage = {
    inputTokens: Math.ceil(request.length / 4),
    outputTokens: Math.ceil(text.length / 4),
    cachedTokens: 0,
    reasoningTokens: 0,
    source: 'counted' as const,
  }
  return [
    { type: 'text', text },
    { type: 'usage', usage },
    { type: 'finish', reason: 'stop' },
  ]
}

const fresh: Kept = { answered: new Map(), spentUsd: 0 }

/** A world with its questions, and a way to evaluate in it. */
export function worldOf(of: {
  seed: number
  items: number
  members?: readonly EvalMember[]
  assumptions?: Assumptions
}): {
  readonly port: InProcess
  readonly questions: readonly Question[]
  readonly members: readonly EvalMember[]
  readonly run: (more?: {
    maxUsd?: number
    maxCalls?: number
    kept?: Kept
    signal?: AbortSignal
    onProgress?: (done: number) => void
  }) => Promise<Evaluation>
} {
  const { seed, items, members = membersNamed('m-one', 'm-two', 'm-three') } = of
  const questions = buildQuestionSet(seed, items)
  const names = members.map(({ id }) => id)
  const given = of.assumptions === undefined ? {} : { assumptions: of.assumptions }
  const port = new InProcess(simulateWorld({ questions, members: names, seed, ...given }))
  return {
    port,
    questions,
    members,
    run: ({
      maxUsd = 100,
      maxCalls = Infinity,
      kept = fresh,
      signal = new AbortController().signal,
      onProgress = () => {},
    } = {}) =>
      evaluate({ port, members, questions, preset: 'balanced', seed, maxUsd, maxCalls, kept, signal, onProgress }),
  }
}

/** Runs this many evaluations, each with its own simulated world, and returns their reports. */
export async function evaluateOften(assumptions: Assumptions, items: number, runs: number): Promise<Report[]> {
  const reports: Report[] = []
  for (let seed = 1; seed <= runs; seed++) {
    const { run, members } = worldOf({ seed: seed * 7_919, items, assumptions })
    reports.push(buildReport(await run(), members)!)
  }
  return reports
}

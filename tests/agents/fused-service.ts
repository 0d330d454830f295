import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import type { AnswerEvent, Conversation } from '../../src/domain/conversation.ts'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import { roleIn, type FusionRole } from '../simulation/fusion-roles.ts'
import { candidatesIn, judgeReply, textOf } from '../simulation/simulated-judge.ts'
import { RequestLines } from './request-lines.ts'
import { RunningService } from './running-service.ts'
import {
  callOf,
  callsOf,
  textAnswer,
  startScriptedModel,
  type ModelCall,
  type ScriptedModel,
} from './scripted-model.ts'

export const fusion = 'svc-router/fusion'
const frontier = 'svc-router/frontier'

/** The model calls of one deliberation, without the call that writes the answer. */
const deliberation: readonly FusionRole[] = ['panel', 'panel', 'panel', 'judge']
/** The model calls of a request whose model calls the fusion tool and continues with the result. */
export const toolTurn: readonly FusionRole[] = ['plain', ...deliberation, 'plain']
/** The model calls of a request that always starts with a deliberation. */
export const deliberationFirst: readonly FusionRole[] = [...deliberation, 'writer']
/** The model calls of a request that answers a fusion question that waited for the client's tool results. */
const deferredTurn: readonly FusionRole[] = [...deliberation, 'plain']
const plainTurn: readonly FusionRole[] = ['plain']

const members = ['alpha', 'beta', 'gamma'] as const
interface FusedServiceOptions {
  readonly format: ConversationFormatId
  /** How long each panel member waits before it sends the first byte of its answer. */
  readonly panelMs: number
  /** The answer for the client, from the writer of a deliberation or from a model that answers alone. */
  readonly respond: (conversation: Conversation, role: 'writer' | 'plain') => readonly AnswerEvent[]
}

/** The running service with three scripted models that deliberate. Records every request line from the agent. */
export class FusedService implements AsyncDisposable {
  readonly service: RunningService
  readonly lines: RequestLines
  /** The role of every model call, in order. */
  readonly roles: readonly FusionRole[]
  readonly #models: readonly ScriptedModel[]

  private constructor(parts: Pick<FusedService, 'service' | 'lines' | 'roles'>, models: readonly ScriptedModel[]) {
    this.service = parts.service
    this.lines = parts.lines
    this.roles = parts.roles
    this.#models = models
  }

  static async start({ format, panelMs, respond }: FusedServiceOptions): Promise<FusedService> {
    const roles: FusionRole[] = []
    const models = await Promise.all(
      members.map((name) =>
        startScriptedModel(format, async (conversation) => {
          const role = roleIn(textOf(conversation) + (conversation.hints.instructions ?? ''))
          roles.push(role)
          if (role === 'judge') return textAnswer(equalScores(conversation))
          if (role !== 'panel') return respond(conversation, role)
          await delay(panelMs)
          return textAnswer(`The answer of ${name}.`)
        }),
      ),
    )
    const config = JSON.stringify({
      providers: Object.fromEntries(
        models.map(({ baseUrl }, index) => [members[index], { preset: 'custom', base_url: baseUrl, format }]),
      ),
      backends: Object.fromEntries(
        members.map((name) => [name, { provider: name, model: `model-of-${name}`, credential_env: 'PRETENDED_KEY' }]),
      ),
    })
    const service = await RunningService.start(config, { PRETENDED_KEY: 'made-up-for-this-test' })
    return new FusedService({ service, lines: await RequestLines.start(service.baseUrl), roles }, models)
  }

  /** The address for an agent: that of the proxy that records request lines. */
  get endpoint(): { readonly origin: string; readonly baseUrl: string } {
    const { baseUrl } = this.lines
    return { baseUrl, origin: new URL(baseUrl).origin }
  }

  /**
   * Expects one deliberation for the user's message to the fusion profile, then one plain call for each further turn of
   * the agent.
   */
  async expectServed(turns: number, path: string): Promise<void> {
    const plain = Array.from({ length: turns - 1 }, () => plainTurn)
    await this.expectTurns([deliberationFirst, ...plain], path, fusion)
  }

  /** Expects one request for each turn. Each was sent once, caused these model calls, and was charged once. */
  async expectTurns(turns: readonly (readonly FusionRole[])[], path: string, profile = frontier): Promise<void> {
    expect(this.roles).toEqual(turns.flat())
    expect(this.lines.seen.filter((line) => line.startsWith(`POST ${path}`))).toHaveLength(turns.length)
    const records = await this.service.requests()
    expect(records).toHaveLength(turns.length)
    for (const record of records) {
      expect(record).toMatchObject({ profile, stream: true, state: 'done', charged: 1 })
      expect(record.errorCode).toBeUndefined()
    }
    expect(records.map(({ attempts }) => attempts.length)).toEqual(turns.map((calls) => calls.length))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lines[Symbol.asyncDispose]()
    await this.service[Symbol.asyncDispose]()
    await Promise.all(this.#models.map((model) => model[Symbol.asyncDispose]()))
  }
}

/** Calls the fusion tool on the first model call, and returns the answers of `next` after that. */
export function fusionToolFirst(next: FusedServiceOptions['respond']): FusedServiceOptions['respond'] {
  let hasCalled = false
  return (conversation, role) => {
    if (hasCalled) return next(conversation, role)
    hasCalled = true
    return callOf(conversation, 'svc_router_fusion', { question: 'What do you think of it?' })
  }
}

/** A model that calls the fusion tool and, once, a tool of the agent, and the turns that result. */
export interface AgentToolScenario {
  readonly respond: (...call: ModelCall) => FusedServiceOptions['respond']
  readonly turns: readonly (readonly FusionRole[])[]
}

/** The model calls the fusion tool first, then the agent's tool. */
export const agentToolAfterFusion: AgentToolScenario = {
  respond: (...call) => fusionToolFirst(callOnce([call])),
  turns: [toolTurn, plainTurn],
}

/** The model calls both tools in one message. The deliberation starts after the agent returns its result. */
export const agentToolWithFusion: AgentToolScenario = {
  respond: (...call) => callOnce([['svc_router_fusion', { question: 'Is it well made?' }], call]),
  turns: [plainTurn, deferredTurn],
}

function callOnce(calls: readonly ModelCall[]): FusedServiceOptions['respond'] {
  let hasCalled = false
  return (conversation) => {
    if (hasCalled) return textAnswer('Done.')
    hasCalled = true
    return callsOf(conversation, calls)
  }
}

/** The reply of a judge that gives all answers the same score, so that a writer is called. */
function equalScores(conversation: Conversation): string {
  const scores = candidatesIn(conversation).map(({ label }): [string, number] => [label, 6])
  expect(scores).toHaveLength(members.length)
  return judgeReply({ scores: Object.fromEntries(scores) })
}

import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import type { AnswerEvent, Conversation } from '../../src/domain/conversation.ts'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import { roleIn, type FusionRole } from '../simulation/fusion-roles.ts'
import { candidatesIn, judgeReply, textOf } from '../simulation/simulated-judge.ts'
import { RequestLines } from './request-lines.ts'
import { RunningService } from './running-service.ts'
import { callOf, callsOf, say, startScriptedModel, type ModelCall, type ScriptedModel } from './scripted-model.ts'

export const fusion = 'svc-router/fusion'
const frontier = 'svc-router/frontier'

/** What the models are asked for one deliberation, but for the answer that comes of it. */
const deliberation: readonly FusionRole[] = ['panel', 'panel', 'panel', 'judge']
/** One request in which the model itself asks the others by the tool, and goes on with what they found. */
export const toolTurn: readonly FusionRole[] = ['plain', ...deliberation, 'plain']
/** One request in which they are asked before the model is. */
export const askedFirst: readonly FusionRole[] = [...deliberation, 'writer']
/** One in which a question is answered that had waited for tools of the caller. */
const deferredTurn: readonly FusionRole[] = [...deliberation, 'plain']
const plainTurn: readonly FusionRole[] = ['plain']

const members = ['alpha', 'beta', 'gamma'] as const
interface FusedPlay {
  readonly format: ConversationFormatId
  /** How long each of the three takes for its own answer: there is not a byte before. */
  readonly panelMs: number
  /** What the model says that speaks to the caller: as the writer of a deliberation, or alone. */
  readonly speak: (conversation: Conversation, role: 'writer' | 'plain') => readonly AnswerEvent[]
}

/** The running service before three scripted models that deliberate, and every request line that an agent sends it. */
export class FusedService implements AsyncDisposable {
  readonly service: RunningService
  readonly lines: RequestLines
  /** What every call to a model was for, in order. */
  readonly roles: readonly FusionRole[]
  readonly #models: readonly ScriptedModel[]

  private constructor(parts: Pick<FusedService, 'service' | 'lines' | 'roles'>, models: readonly ScriptedModel[]) {
    this.service = parts.service
    this.lines = parts.lines
    this.roles = parts.roles
    this.#models = models
  }

  static async start({ format, panelMs, speak }: FusedPlay): Promise<FusedService> {
    const roles: FusionRole[] = []
    const models = await Promise.all(
      members.map((name) =>
        startScriptedModel(format, async (conversation) => {
          const role = roleIn(textOf(conversation) + (conversation.hints.instructions ?? ''))
          roles.push(role)
          if (role === 'judge') return say(judgeOf(conversation))
          if (role !== 'panel') return speak(conversation, role)
          await delay(panelMs)
          return say(`What ${name} thinks of it.`)
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
    return new FusedService({ service, lines: await RequestLines.before(service.baseUrl), roles }, models)
  }

  /** Where an agent finds it: behind what writes its request lines down. */
  get endpoint(): { readonly origin: string; readonly baseUrl: string } {
    const { baseUrl } = this.lines
    return { baseUrl, origin: new URL(baseUrl).origin }
  }

  /**
   * One deliberation for what the user said to the alias, and one plain call for each turn of the agent's own behind
   * it.
   */
  async expectServed(turns: number, path: string): Promise<void> {
    const plain = Array.from({ length: turns - 1 }, () => plainTurn)
    await this.expectTurns([askedFirst, ...plain], path, fusion)
  }

  /** As many requests as turns, each sent once, answered at once by these calls, and charged once. */
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

/** A model with the tool: it asks the others the first time it is asked, and from then on says what `next` says. */
export function askingFirst(next: FusedPlay['speak']): FusedPlay['speak'] {
  let hasAsked = false
  return (conversation, role) => {
    if (hasAsked) return next(conversation, role)
    hasAsked = true
    return callOf(conversation, 'svc_router_fusion', { question: 'What do you think of it?' })
  }
}

/** A model with the tool that also calls a tool of the agent's own, once, and the turns that come of it. */
export interface Calling {
  readonly speak: (...call: ModelCall) => FusedPlay['speak']
  readonly turns: readonly (readonly FusionRole[])[]
}

/** It asks the others first, and calls the agent's tool with what they found. */
export const callAfter: Calling = {
  speak: (...call) => askingFirst(callingOnce([call])),
  turns: [toolTurn, plainTurn],
}

/** It calls both in the same breath: the others are asked when the agent has answered. */
export const callAlong: Calling = {
  speak: (...call) => callingOnce([['svc_router_fusion', { question: 'Is it well made?' }], call]),
  turns: [plainTurn, deferredTurn],
}

function callingOnce(calls: readonly ModelCall[]): FusedPlay['speak'] {
  let hasCalled = false
  return (conversation) => {
    if (hasCalled) return say('Done.')
    hasCalled = true
    return callsOf(conversation, calls)
  }
}

/** A judge that finds all equally good, so that the answer is written. */
function judgeOf(conversation: Conversation): string {
  const scores = candidatesIn(conversation).map(({ label }): [string, number] => [label, 6])
  expect(scores).toHaveLength(members.length)
  return judgeReply({ scores: Object.fromEntries(scores) })
}

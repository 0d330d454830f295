import { expect } from 'vitest'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { RunningService } from './running-service.ts'

const upstreamPaths: Partial<Record<ConversationFormatId, string>> = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
}

/** The running service with one backend, which is simulated and can be scripted. */
export class OneBackend implements AsyncDisposable {
  readonly service: RunningService
  readonly provider: SimulatedProvider
  readonly #format: ConversationFormatId

  private constructor(service: RunningService, provider: SimulatedProvider, format: ConversationFormatId) {
    this.service = service
    this.provider = provider
    this.#format = format
  }

  static async start(format: ConversationFormatId, preset = 'custom'): Promise<OneBackend> {
    const provider = await startSimulatedProvider({ name: 'alpha', capture: true })
    return new OneBackend(await RunningService.startBefore(provider, format, preset), provider, format)
  }

  /**
   * One streamed record in the client's format for each turn, each served by the first attempt and charged once, and no
   * request besides.
   */
  async expectServed(turns: number, spoken: ConversationFormatId): Promise<void> {
    const records = await this.service.requests()
    expect(records).toHaveLength(turns)
    for (const record of records) {
      expect(record).toMatchObject({
        profile: 'svc-router/frontier',
        format: spoken,
        stream: true,
        state: 'done',
        charged: 1,
        attempts: [{ backend: 'alpha', outcome: 'answered' }],
        usage: { source: 'counted' },
      })
      expect(record.errorCode).toBeUndefined()
    }
    expect(this.provider.captured().map(({ path }) => path)).toEqual(records.map(() => upstreamPaths[this.#format]))
  }

  /** How each request that was admitted ended, in order: its error's code, or undefined where it was answered. */
  async outcomes(): Promise<(string | undefined)[]> {
    return (await this.service.requests()).map(({ errorCode }) => errorCode)
  }

  /** The body of the last request that reached the backend. */
  lastAsked(): string {
    return this.provider.captured().at(-1)!.body
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]()
    await this.provider.close()
  }
}

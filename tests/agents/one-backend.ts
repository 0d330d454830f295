import { expect } from 'vitest'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { RunningService } from './running-service.ts'

const upstreamPaths: Partial<Record<ConversationFormatId, string>> = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
}

/** The running service with one simulated backend that tests can script. */
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
    return new OneBackend(await RunningService.startWithProvider(provider, format, preset), provider, format)
  }

  /**
   * Expects one streamed request in the client's format for each turn. The first attempt answered each, each was charged
   * once, and there are no other requests.
   */
  async expectServed(turns: number, format: ConversationFormatId): Promise<void> {
    const records = await this.service.requests()
    expect(records).toHaveLength(turns)
    for (const record of records) {
      expect(record).toMatchObject({
        profile: 'svc-router/frontier',
        format,
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

  /** The outcome of each admitted request, in order: its error code, or undefined if it was answered. */
  async outcomes(): Promise<(string | undefined)[]> {
    return (await this.service.requests()).map(({ errorCode }) => errorCode)
  }

  /** The body of the last request that reached the backend. */
  lastBody(): string {
    return this.provider.captured().at(-1)!.body
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]()
    await this.provider.close()
  }
}

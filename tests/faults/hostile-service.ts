import { expect } from 'vitest'
import { Service } from '../service.ts'

/** Placeholder for the key in bytes that are defined before the key exists. */
export const keyPlace = 'THE-KEY'
/** Node checks for slow connections every two seconds; the rest allows for a busy machine. */
export const slowLimitMs = 8_000
export const MiB = 1024 * 1024

/** A service with short time limits. On chat, `svc-router/frontier` is relayed and `team/other` translated. */
export class HostileService {
  readonly service: Service

  private constructor(service: Service) {
    this.service = service
  }

  static async start(): Promise<HostileService> {
    const service = await Service.start({
      formats: ['openai-chat', 'openai-responses'],
      settings: {
        limits: { header_time: '1s', body_time: '1s' },
        plans: { max: { name: 'Max', requests_per_minute: 1_000_000, requests_per_month: 10_000_000, premium: true } },
        profiles: { 'svc-router/frontier': { backends: ['alpha'] }, 'team/other': { backends: ['beta'] } },
      },
    })
    return new HostileService(service)
  }

  /** Asserts that the next request succeeds, nothing is left open, and no internal error occurred. */
  async expectUnharmed(): Promise<void> {
    const { service } = this
    expect((await service.chat()).status).toBe(200)
    await expect.poll(() => service.providers.reduce((sum, provider) => sum + provider.counts().open, 0)).toBe(0)
    expect(service.events.filter(({ event }) => event === 'internal_error')).toEqual([])
  }

  /** The bytes with the key instead of its placeholder. */
  sign(bytes: string): string {
    return bytes.replaceAll(keyPlace, this.service.key)
  }
}

/** The head of a POST to chat; further headers each end with a line end. */
export function head(headers: string): string {
  const lines = [
    'POST /v1/chat/completions HTTP/1.1',
    'host: x',
    'user-agent: t/1',
    `authorization: Bearer ${keyPlace}`,
  ]
  return `${lines.join('\r\n')}\r\ncontent-type: application/json\r\n${headers}\r\n`
}

/** A complete chat request as bytes. */
export function whole(extra: object): string {
  const messages = [{ role: 'user', content: 'Hello' }]
  const text = JSON.stringify({ model: 'svc-router/frontier', messages, ...extra })
  return head(`content-length: ${text.length}\r\n`) + text
}

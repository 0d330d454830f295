import { describe, expect, test } from 'vitest'
import { errorCodes } from '../../src/domain/error-message.ts'
import type { ErrorCode } from '../../src/domain/errors.ts'
import { linksFor } from '../../src/domain/links.ts'
import { expectRefusal } from '../refusals.ts'
import type { Service } from '../service.ts'
import { shareServices } from '../shared-service.ts'
import { clientRefusals } from './client-refusals.ts'
import { messagesRefusals } from './messages-refusals.ts'
import { ask, canaries, expectNoCanary, failingRecords, prompt, withDatabase } from './provoke.ts'
import type { RefusalRow } from './refusal-row.ts'
import { serviceRefusals } from './service-refusals.ts'

const formatsByPath = {
  '/chat/completions': 'openai-chat',
  '/responses': 'openai-responses',
  '/messages': 'anthropic-messages',
} as const
const rows = [...clientRefusals, ...serviceRefusals, ...messagesRefusals]
/** Codes that occur only in a started stream: provoked below, and `restarting` in faults/drain. */
const inStream: readonly ErrorCode[] = ['upstream_broken', 'restarting']
/** Codes that occur only in WebSocket messages: provoked in http/websocket/responses-socket. */
const onSockets: readonly ErrorCode[] = ['websocket_connection_limit_reached', 'websocket_queue_full']

const share = shareServices()
let service: Service

function nameOf({ code, how, shape }: RefusalRow): string {
  return `${code}${how === undefined ? '' : `: ${how}`}${shape === undefined ? '' : ', to a client of Anthropic’s'}`
}

describe('every HTTP error is complete and reveals no secret', () => {
  test.each(rows.map((row) => [nameOf(row), row] as const))('%s', async (_name, row) => {
    service = await share({ formats: ['openai-chat', 'openai-chat'], ...row.options })
    await service.connectOwn(canaries.credential)
    const answer = await row.provoke(service)
    const { link } = row
    const filled = link?.replace('APP', service.config.appUrl).replace('BASE', service.baseUrl)
    expectRefusal(
      answer,
      { ...row, ...(filled === undefined ? {} : { link: filled }) },
      linksFor(service.config.appUrl),
    )
    expectNoCanary(service, answer)
  })

  test('the table has a row for every code of the catalog', async () => {
    service = await share({ formats: [] })
    const provoked = new Set<string>([...rows.map(({ code }) => code), ...inStream, ...onSockets])
    expect(errorCodes.filter((code) => !provoked.has(code))).toEqual([])
  })

  test('the secret credential was really sent to the provider', async () => {
    service = await share({ formats: ['openai-chat'] })
    await service.connectOwn(canaries.credential)
    await ask(service)
    expect(service.providers[0]!.captured()[0]?.headers.authorization).toBe(`Bearer ${canaries.credential}`)
    expect(service.providers[0]!.captured()[0]?.body).toContain(canaries.prompt)
  })
})

describe('a broken stream ends with an error', () => {
  test.each([
    ['/chat/completions', { messages: [{ role: 'user', content: prompt }] }],
    ['/responses', { input: prompt }],
    ['/messages', { messages: [{ role: 'user', content: prompt }], max_tokens: 100 }],
  ] as const)('%s ends with upstream_broken and without text of the provider', async (path, body) => {
    service = await share({ formats: [formatsByPath[path]] })
    service.providers[0]!.script([{ do: 'cut', afterEvents: 5, text: 'one two three four five six seven' }])
    const answer = await ask(service, { path, body: { model: 'svc-router/frontier', stream: true, ...body } })
    expect(answer.status).toBe(200)
    expect(answer.text.endsWith('data: [DONE]\n\n')).toBe(path !== '/messages')
    const errors = answer.text
      .split('\n')
      .filter((line) => line.startsWith('data: {'))
      .map(
        (line) =>
          JSON.parse(line.slice(6)) as {
            type?: string
            error?: Record<string, unknown> | null
            code?: string
            message?: string
          },
      )
      .filter(({ type, error }) => type === 'error' || (type === undefined && error != null))
    expect(errors).toHaveLength(1)
    const [event] = errors
    expect(event?.error).toMatchObject({ code: 'upstream_broken', param: null })
    expect(event?.error?.['type']).toBe(path === '/messages' ? 'api_error' : 'server_error')
    const requestId = answer.headers.get('x-request-id')
    expect(event?.error).toMatchObject({ source: 'provider', retryable: true, request_id: requestId })
    expect(String(event?.error?.['message']).length).toBeLessThanOrEqual(240)
    if (path === '/responses') {
      expect(event).toMatchObject({ code: 'upstream_broken', message: event?.error?.['message'] })
      expect(answer.text).toContain('event: response.failed\n')
    }
    if (path === '/messages') {
      expect(event?.message).toBe(event?.error?.['message'])
      expect(answer.text).toMatch(/event: error\ndata: .*\n\n$/)
      expect(answer.text).not.toContain('message_stop')
    }
    expectNoCanary(service, answer)
  })
})

describe('after its store is back the service answers again', () => {
  test('requests are admitted again once records can be written', async () => {
    service = await share({ formats: ['openai-chat'] })
    const broken = await withDatabase(service, failingRecords, () => ask(service), 'drop trigger failing')
    expect(broken.status).toBe(503)
    await expect.poll(async () => (await ask(service)).status, { timeout: 10_000 }).toBe(200)
    await expect.poll(() => service.store.usedUnits(service.account.id, new Date().toISOString().slice(0, 7))).toBe(1)
  })

  test('a key that could not be checked works again, and was never called invalid', async () => {
    service = await share({ formats: ['openai-chat'] })
    const broken = await withDatabase(
      service,
      'alter table keys rename to keys_away',
      () => ask(service),
      'alter table keys_away rename to keys',
    )
    expect(broken.status).toBe(503)
    expect((await ask(service)).status).toBe(200)
  })
})

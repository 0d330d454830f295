import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import type { Service } from '../service.ts'
import { signedInTo, startWeb, type Visitor } from './browser-less.ts'

const canary = 'canary-of-the-question'
let service: Service
let visitor: Visitor
let answeredId: string
let failedId: string

beforeAll(async () => {
  ;({ service, visitor } = await startWeb())
  const { token } = await openSession({ ...service.accountsDeps, store: service.store }, service.account.id, {
    method: 'link',
    agent: 'Tests',
  })
  visitor.cookie = `svc_session=${token.reveal()}`
  answeredId = (await service.chat({ messages: [{ role: 'user', content: canary }] })).headers.get('x-request-id')!
  await service.chat({ model: 'svc-router/fusion' })
  for (const provider of service.providers)
    provider.script(Array.from({ length: 5 }, () => ({ do: 'status', status: 503 }) as const))
  failedId = (await service.chat()).headers.get('x-request-id')!
  await vi.waitFor(async () => {
    const records = await service.store.listActivity(service.account.id, { limit: 9, outcome: 'failed' }, 9)
    expect(records.map(({ id }) => id)).toEqual([failedId])
  })
})
afterAll(() => service.stop())

const textOf = async (path: string): Promise<string> => (await visitor.get(path)).text()
/** The request IDs on a page, in order, without duplicates. */
const idsOn = (text: string): string[] => [
  ...new Set(Array.from(text.matchAll(/\/activity\/(req_\w+)"/g), ([, id]) => id!)),
]

describe('usage', () => {
  test('a used-up quota links to the plans, at any time of the month', async () => {
    const max = { name: 'Max', requests_per_minute: 60, requests_per_month: 1, premium: true }
    const { service: other } = await startWeb({ settings: { plans: { max }, default_plan: 'max' } })
    try {
      const owner = await signedInTo(other)
      await (await other.chat()).text()
      await expect
        .poll(async () => (await owner.get('/usage')).text())
        .toContain('Your monthly quota is used up. <a href="/billing/upgrade">See plans</a>')
    } finally {
      await other.stop()
    }
  })

  test.each(['/usage', '/usage?range=month'])(
    '%s shows the same numbers as a chart, in words, and as a table',
    async (path) => {
      const text = await textOf(path)
      expect(text).toMatch(/aria-label="Requests by day: 3 requests in \d+ days, at most 3 on/)
      expect(text).toMatch(/2 answered, 1 with an error/)
      expect(text).toContain('server_is_overloaded')
      expect(text).toContain('svc-router/fusion')
      expect(text).toContain('2</strong> of 100,000 requests this month')
      expect(text).not.toContain('style=')
    },
  )

  test('the JSON adds up to the enforced counts', async () => {
    const response = await visitor.get('/usage.json?range=month')
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="svc-router-usage-month.json"')
    const body = (await response.json()) as {
      truncated: boolean
      quota: { quotaUsed: number }
      usage: { requests: number; charged: number; errorCode: string | null }[]
    }
    expect(body.truncated).toBe(false)
    expect(body.usage.reduce((sum, { requests }) => sum + requests, 0)).toBe(3)
    expect(body.usage.reduce((sum, { charged }) => sum + charged, 0)).toBe(body.quota.quotaUsed)
  })

  test('the CSV has a row for each kind of request', async () => {
    const response = await visitor.get('/usage.csv')
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    const [head, ...rows] = (await response.text()).trimEnd().split('\r\n')
    expect(head).toMatch(/^day,profile,backend,key_id,error,requests,/)
    expect(rows.length).toBe(3)
    expect(rows.some((row) => row.includes('server_is_overloaded,1,0'))).toBe(true)
  })
})

describe('activity', () => {
  test('Activity lists every request, filtered by outcome, profile, key, and day', async () => {
    const [key] = await service.store.listKeys(service.account.id, 1)
    const today = new Date().toISOString().slice(0, 10)
    expect(idsOn(await textOf('/activity')).length).toBe(3)
    expect(idsOn(await textOf('/activity?outcome=failed'))).toEqual([failedId])
    expect(idsOn(await textOf('/activity?outcome=answered')).length).toBe(2)
    expect(idsOn(await textOf('/activity?profile=svc-router/fusion')).length).toBe(1)
    expect(idsOn(await textOf(`/activity?key=${key!.id}&day=${today}`)).length).toBe(3)
    expect(idsOn(await textOf('/activity?key=key_another'))).toEqual([])
    expect(await textOf('/activity?day=2020-01-01')).toContain('No requests match')
  })

  test('an invalid filter value is ignored and not echoed', async () => {
    const text = await textOf('/activity?outcome=%22%3Ex&profile=%3Cb%3E&key=x&day=2026-99-99&before=%27')
    expect(idsOn(text).length).toBe(3)
    expect(text).not.toContain('<b>')
  })

  test('CSV and JSON use the same filters', async () => {
    const lines = (await textOf('/activity.csv?outcome=failed')).trimEnd().split('\r\n')
    expect(lines.length).toBe(2)
    expect(lines[1]).toContain(failedId)
    const body = (await (await visitor.get('/activity.json?profile=svc-router/fusion')).json()) as {
      requests: { fusions: unknown[] }[]
    }
    expect(body.requests.map(({ fusions }) => fusions.length)).toEqual([1])
  })

  test('the list continues page by page without a gap', async () => {
    for (let count = 0; count < 30; count++) await service.chat()
    await vi.waitFor(async () => {
      expect((await service.store.listActivity(service.account.id, { limit: 99 }, 99)).length).toBe(33)
    })
    const first = await textOf('/activity')
    const next = /href="([^"]+)" rel="next"|rel="next" href="([^"]+)"/.exec(first)
    const second = await textOf((next?.[1] ?? next?.[2] ?? '').replaceAll('&amp;', '&'))
    const ids = [...idsOn(first), ...idsOn(second)]
    expect([ids.length, new Set(ids).size]).toEqual([33, 33])
    expect(second).not.toContain('rel="next"')
    expect(Buffer.byteLength(first)).toBeLessThan(30 * 1024)
  })
})

describe('one request', () => {
  test("the page shows the whole trail and none of the request's text", async () => {
    const text = await textOf(`/activity/${answeredId}`)
    for (const part of [
      'alpha',
      'answered',
      'simulated-',
      'counted by the provider',
      '1 of 1 request charged',
      'First content',
    ])
      expect(text, part).toContain(part)
    expect(text).not.toContain(canary)
    expect(await textOf(`/activity/${answeredId}/record.json`)).not.toContain(canary)
  })

  test("a failed request shows each attempt, that nothing was charged, and a link to its error's page", async () => {
    const text = await textOf(`/activity/${failedId}`)
    expect(text).toContain('href="/docs/errors/server_is_overloaded"')
    expect(text).toContain('0 of 1 request charged')
    expect(text.match(/server error/g)?.length).toBe(3)
    expect(text).toContain('503')
  })

  test('a fusion request shows how the panel reached its answer', async () => {
    const [id = ''] = idsOn(await textOf('/activity?profile=svc-router/fusion'))
    const text = await textOf(`/activity/${id}`)
    for (const part of ['Fusion: synthesized', '3 of 3 answered', 'Verdict', 'fusion-panel/', 'synthesis'])
      expect(text, part).toContain(part)
  })

  test('a request that does not exist is not found', async () => {
    expect((await visitor.get('/activity/req_none')).status).toBe(404)
    expect((await visitor.get('/activity/req_none/record.json')).status).toBe(404)
  })
})

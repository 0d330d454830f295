import { afterAll, beforeAll, expect, test } from 'vitest'
import { Service } from '../service.ts'

const streams = 20
const fusion = 'svc-router/fusion'
const tool = { type: 'svc-router:fusion' }

let service: Service
let other: string
const open: Response[] = []
beforeAll(async () => {
  service = await Service.start({ settings: { limits: { streams } } })
  other = (await service.addAccount('other', 'max')).key
})
afterAll(() => service.stop())

/** Leaves this many more streams open. */
async function leaveOpen(count: number, key: string): Promise<void> {
  for (const provider of service.providers) provider.script([{ do: 'stall', afterEvents: 2, repeat: true }])
  const headers = { authorization: `Bearer ${key}` }
  const opened = await Promise.all(Array.from({ length: count }, () => service.chat({ stream: true }, headers)))
  expect(opened.map(({ status }) => status)).toEqual(opened.map(() => 200))
  open.push(...opened)
  for (const provider of service.providers) provider.script([])
}

function ask(body: object, headers: Record<string, string> = {}): Promise<Response> {
  return service.chat({ ...body }, { authorization: `Bearer ${other}`, ...headers })
}

const reasonIn = (text: string): unknown =>
  (JSON.parse(text) as { svc_router?: { fusion?: { reason?: string } } }).svc_router?.fusion?.reason

test('with many open requests, retries of clients are rejected first, then fusion falls back to a single model', async () => {
  const retry = { 'x-stainless-retry-count': '1' }
  await leaveOpen(13, service.key)
  expect((await ask({}, retry)).status).toBe(200)
  await leaveOpen(4, other)
  await expect.poll(() => service.events.at(-1)).toMatchObject({ event: 'load_shedding', sheds: ['retries'] })
  const before = await ask({})
  const rejected = await ask({}, retry)
  expect([rejected.status, rejected.headers.get('retry-after'), rejected.headers.get('x-should-retry')]).toEqual([
    503,
    '2',
    'true',
  ])
  expect(await rejected.json()).toMatchObject({ error: { code: 'load_shed', source: 'gateway' } })
  const after = await ask({})
  const left = ({ headers }: Response): number => Number(headers.get('x-quota-remaining'))
  expect([before.status, after.status, left(before) - left(after)]).toEqual([200, 200, 1])
  await leaveOpen(1, other)
  await expect.poll(() => service.events.at(-1)).toMatchObject({ sheds: ['retries', 'fusion'] })
  const alone = await ask({ model: fusion })
  expect([alone.status, reasonIn(await alone.text())]).toEqual([200, 'overloaded'])
  const attached = await ask({ tools: [tool] })
  expect([attached.status, reasonIn(await attached.text())]).toEqual([200, 'overloaded'])
  const forced = await ask({ tools: [tool], tool_choice: tool })
  expect([forced.status, await forced.text()]).toEqual([
    503,
    expect.stringContaining('requests that force the fusion tool'),
  ])
  await Promise.all(open.map(({ body }) => body!.cancel()))
  await expect
    .poll(() => service.events.findLast(({ event }) => event === 'load_shedding'), { timeout: 10_000 })
    .toMatchObject({ sheds: [] })
  expect((await ask({}, retry)).status).toBe(200)
})

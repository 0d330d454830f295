import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import type { Service } from '../service.ts'
import { startWeb, type Visitor } from './browser-less.ts'
import { enterAs } from './operator.ts'

let service: Service
let visitor: Visitor

beforeAll(async () => {
  // One dollar for a thousand tokens, for only one of the backends.
  const facts = { alpha: { usd_per_million: { input: 1000, output: 1000 } } }
  ;({ service, visitor } = await startWeb({ facts }))
  const { token } = await openSession({ ...service.accountsDeps, store: service.store }, service.account.id, {
    method: 'link',
    agent: 'Tests',
  })
  visitor.cookie = `svc_session=${token.reveal()}`
})
afterAll(() => service.stop())

const textOf = async (path: string): Promise<string> => (await visitor.get(path)).text()

/** Waits for the record of a request, then returns the text of its page. */
async function pageOf(answer: Response): Promise<string> {
  const id = answer.headers.get('x-request-id')!
  await vi.waitFor(async () => expect((await service.store.findRequest(id))?.state).toBe('done'))
  return textOf(`/activity/${id}`)
}

test('the trail, the list, the sums, and the downloads show what a request costs', async () => {
  const answer = await service.chat()
  const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } }
  const thousandths = usage.prompt_tokens + usage.completion_tokens
  const cost = `${(thousandths / 1000).toFixed(4)} USD`
  const text = await pageOf(answer)
  expect(text).toContain(`<dd>${cost}`)
  expect(text).toMatch(/price version \d{4}-\d\d-\d\d\+[0-9a-f]{8}/)
  expect(await textOf('/activity')).toContain(` · ${cost}`)
  const [header, row] = (await textOf('/activity.csv')).trimEnd().split('\r\n')
  const column = header!.split(',').indexOf('cost_usd')
  expect(row!.split(',').slice(column, column + 3)).toEqual([String(thousandths / 1000), 'counted', '0'])

  service.providers[0]!.script([{ do: 'status', status: 503 }])
  expect(await pageOf(await service.chat()), 'answered by a backend without a price').toContain('<dd>unknown')
  expect(await textOf('/activity')).toContain(' · cost unknown')
  const usagePage = await textOf('/usage')
  expect(usagePage).toContain(`<dd>${cost}</dd>`)
  expect(usagePage).toContain('The cost of 1 request is unknown and not included.')
  expect(usagePage.replaceAll(/\s+/g, ' ')).toMatch(/Cost unknown.*<td class="number">1<\/td> <\/tr>/)
  const rows = (await textOf('/usage.csv')).trimEnd().split('\r\n')
  expect(rows[0]).toMatch(/,cost_usd,cache_saved_usd,requests_with_unknown_cost$/)
  expect(rows.slice(1).filter((row) => row.endsWith(`,${thousandths / 1000},0,0`)).length).toBe(1)
  expect(rows.slice(1).filter((row) => row.endsWith(',,,1')).length).toBe(1)
})

test('the pages show what sessions cost, and one session by itself', async () => {
  const messages = [{ role: 'user', content: 'Tell me a long story. '.repeat(200) }]
  const named = { 'x-session-id': 'my session' }
  await pageOf(await service.chat({ messages }, named))
  const text = (await pageOf(await service.chat({ messages }, named))).replaceAll(/\s+/g, ' ')
  const session = /2 requests, ([\d.]+ USD) · <a href="\/activity\?session=(ses_[\w-]+)"/.exec(text)
  expect(session).not.toBeNull()
  const [, cost, id] = session!
  const usagePage = (await textOf('/usage')).replaceAll(/\s+/g, ' ')
  expect(usagePage).toMatch(new RegExp(`<h2>Cost by session</h2>.*session=${id}.*<td class="number">${cost}</td>`))
  const own = (await textOf(`/usage?session=${id}`)).replaceAll(/\s+/g, ' ')
  expect(own).toContain(`<dd>${cost}</dd>`)
  expect(own).toContain(`href="/usage.csv?range=30d&amp;session=${id}"`)
  expect(own).not.toContain('Cost by session')
  expect(own).not.toContain('This month</h2>')
  const [key] = await service.store.listKeys(service.account.id, 1)
  const withKey = (await textOf(`/usage?key=${key!.id}`)).replaceAll(/\s+/g, ' ')
  expect(withKey).toContain(`Only requests with the key <strong>${key!.name}</strong>.`)
  expect(withKey).toContain(`session=${id}`)
  expect(await textOf('/account/keys')).toContain(`href="/usage?key=${key!.id}"`)
  const withOther = await textOf('/usage?key=key_other')
  expect(withOther).toContain('No requests in this period')
  expect(withOther).not.toContain('Cost by session')
  const list = (await textOf(`/activity?session=${id}`)).replaceAll(/\s+/g, ' ')
  expect(list).toContain(`Only requests in session <code>${id}</code>: 2 requests, ${cost}.`)
  const rows = (await textOf(`/activity.csv?session=${id}`)).trimEnd().split('\r\n')
  expect(rows[0]).toMatch(/,session$/)
  expect(rows.slice(1).map((row) => row.split(',').at(-1))).toEqual([id, id])
  expect((await textOf('/usage.csv?session=ses_none')).trimEnd().split('\r\n')).toHaveLength(1)
})

test('operators see the costs of one account, and nothing of another', async () => {
  const answer = await service.chat()
  const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } }
  await pageOf(answer)
  const { visitor: console } = await enterAs(service, 'viewer', 'viewer@example.com')
  const costsOf = async (id: string): Promise<string> =>
    (await (await console.get(`/operator/accounts/${id}/costs`)).text()).replaceAll(/\s+/g, ' ')
  const sum = (await textOf('/usage')).match(/<dt>Cost at the providers<\/dt>\s*<dd>([\d.]+) USD/)?.[1]
  expect(Number(sum)).toBeGreaterThanOrEqual((usage.prompt_tokens + usage.completion_tokens) / 1000)
  const own = await costsOf(service.account.id)
  expect(own).toContain(`<dd>${sum} USD</dd>`)
  expect(own).toMatch(/<h2>Cost by key<\/h2>.*<th scope="row">test<\/th>.*<h2>Cost by model<\/h2>/)
  const other = await service.addAccount('quiet', 'free')
  expect(await costsOf(other.account.id)).toContain('sent no requests in the last 30 days')
  expect((await console.get('/operator/accounts/acc_none/costs')).status).toBe(404)

  const all = (await (await console.get('/operator/costs')).text()).replaceAll(/\s+/g, ' ')
  expect(all).toContain(`<dd>${sum} USD</dd>`)
  const rowOf = (title: string, name: string): string | undefined =>
    new RegExp(`<h2>${title}</h2>.*?<th scope="row"[^>]*>${name}</th>(.*?)</tr>`).exec(all)?.[1]
  expect(rowOf('Cost by account', `<a href="/operator/accounts/${service.account.id}/costs">tester</a>`)).toContain(sum)
  expect(rowOf('Cost by model', 'model-of-alpha')).toContain(`${sum} USD`)
  expect(rowOf('Cost by backend', 'beta')).toContain('unknown')
  expect(rowOf('Cost by day', new Date().toISOString().slice(0, 10))).toContain(`${sum} USD`)
  const csv = (await (await console.get('/operator/costs.csv?range=month')).text()).trimEnd().split('\r\n')
  expect(csv[0]).toBe('day,account,profile,backend,requests,cost_usd,cache_saved_usd,requests_with_unknown_cost')
  const listed = csv
    .slice(1)
    .map((row) => row.split(','))
    .filter(([, account]) => account === service.account.id)
  expect(new Set(listed.map(([, , , backend]) => backend))).toEqual(new Set(['alpha', 'beta']))
  expect(listed.find(([, , , backend]) => backend === 'beta')!.slice(5)).toEqual(['', '', '1'])
})

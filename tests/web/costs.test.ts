import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import type { Service } from '../service.ts'
import { startWeb, type Visitor } from './browser-less.ts'

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

test("the trail, the list, and the sum show a request's estimated cost if the price is known", async () => {
  const answer = await service.chat()
  const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } }
  const cost = `${((usage.prompt_tokens + usage.completion_tokens) / 1000).toFixed(4)} USD`
  const text = await pageOf(answer)
  expect(text).toContain('<dt>Estimated cost</dt>')
  expect(text).toContain(cost)
  expect(await textOf('/activity')).toContain(`estimated ${cost}`)

  service.providers[0]!.script([{ do: 'status', status: 503 }])
  expect(await pageOf(await service.chat()), 'answered by a backend without a price').not.toContain('Estimated cost')
  const usagePage = await textOf('/usage')
  expect(usagePage).toContain(cost)
  expect(usagePage).toContain('The price of 1 request is unknown and not included.')
  const rows = (await textOf('/usage.csv')).trimEnd().split('\r\n')
  expect(rows[0]).toMatch(/,estimated_cost_usd$/)
  expect(rows.slice(1).filter((row) => !row.endsWith(',')).length).toBe(1)
})

import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import type { RequestRecord } from '../../src/domain/requests.ts'
import type { Service } from '../service.ts'
import { startWeb, type Visitor } from './browser-less.ts'

let service: Service
let visitor: Visitor

beforeAll(async () => {
  ;({ service, visitor } = await startWeb())
  const { token } = await openSession({ ...service.accountsDeps, store: service.store }, service.account.id, {
    method: 'link',
    agent: 'Tests',
  })
  visitor.cookie = `svc_session=${token.reveal()}`
})
afterAll(() => service.stop())

async function ask(): Promise<RequestRecord> {
  const answer = await service.chat()
  await answer.text()
  const id = answer.headers.get('x-request-id')!
  return vi.waitFor(async () => {
    const record = await service.store.findRequest(id)
    expect(record?.state).toBe('done')
    return record!
  })
}

test('the trail names the backends that a request skipped, and why', async () => {
  expect(await ask()).not.toHaveProperty('passedBy')
  service.providers[0]!.script([{ do: 'status', status: 401 }])
  expect(await ask(), 'it was asked, so it was not skipped').not.toHaveProperty('passedBy')
  const skipping = await ask()
  expect(skipping.attempts.map(({ backend }) => backend)).toEqual(['beta'])
  expect(skipping.passedBy).toEqual([{ backend: 'alpha', reason: 'credentials' }])
  const page = await (await visitor.get(`/activity/${skipping.id}`)).text()
  expect(page).toMatch(/Skipped backends[\s\S]*alpha[\s\S]*its provider rejected the credential/)
  for (const provider of service.providers) provider.script([{ do: 'status', status: 401, repeat: true }])
  await ask()
  await ask()
  expect((await ask()).passedBy).toEqual([
    { backend: 'alpha', reason: 'credentials' },
    { backend: 'beta', reason: 'credentials' },
    { backend: 'gamma', reason: 'credentials' },
  ])
})

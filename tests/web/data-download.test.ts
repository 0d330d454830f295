import { expect, test } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { startWeb, Visitor } from './browser-less.ts'

test("an account's data can be downloaded ten times in ten minutes, and other accounts are not affected", async () => {
  const clock = new SkippingClock()
  const { service } = await startWeb({ settings: { app_listen: { port: 0 } }, clock })
  clock.startMinute(10)
  try {
    const other = await service.addAccount('other', 'max')
    const signIn = async (accountId: string): Promise<Visitor> => {
      const visitor = new Visitor(service.config.appUrl)
      const accountsDeps = { ...service.accountsDeps, store: service.store }
      const { token } = await openSession(accountsDeps, accountId, { method: 'link', agent: 'Tests' })
      visitor.cookie = `svc_session=${token.reveal()}`
      return visitor
    }
    const visitor = await signIn(service.account.id)
    const statuses: number[] = []
    for (let count = 0; count < 11; count++) {
      const response = await visitor.get('/account/data/download')
      await response.text()
      statuses.push(response.status)
    }
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429])
    expect((await (await signIn(other.account.id)).get('/account/data/download')).status).toBe(200)
  } finally {
    await service.stop()
  }
})

import { expect, test, vi } from 'vitest'
import { createSignInLink } from '../../../src/accounts/identity/proofs.ts'
import { Service } from '../../service.ts'
import { Visitor } from '../browser-less.ts'

const connectedIn = 2000

/** The page after a sign-in by link, for a requested path. */
async function signIn(service: Service): Promise<{ visitor: Visitor; to: string }> {
  const { appUrl } = service.config
  const link = await createSignInLink({ ...service.accountsDeps, store: service.store }, service.account.id, appUrl)
  const visitor = new Visitor(appUrl)
  const response = await visitor.post('/sign-in/link', { token: link.reveal().split('=')[1] ?? '' })
  return { visitor, to: response.headers.get('location') ?? '' }
}

test('a sign-in leads to the next step before the first request, and to the requests afterwards', async () => {
  const service = await Service.start()
  try {
    const before = await signIn(service)
    expect(before.to).toBe('/connect?done=signed-in')
    const next = await (await before.visitor.get(before.to)).text()
    expect(next).toContain('You are signed in.')
    expect(next).toContain('Next step: send your first request.')
    expect((await before.visitor.get('/sign-in')).headers.get('location')).toBe('/connect')

    await (await service.chat()).text()
    await vi.waitFor(async () => expect((await signIn(service)).to).toBe('/activity?done=signed-in'), connectedIn)
    expect((await before.visitor.get('/sign-in')).headers.get('location')).toBe('/activity')
    expect((await before.visitor.get('/account/setup')).headers.get('location')).toBe('/account/keys')
    expect(await (await before.visitor.get('/connect')).text()).not.toContain('Next step')
    expect(await (await new Visitor(service.config.appUrl).get('/connect')).text()).not.toContain('Next step')
  } finally {
    await service.stop()
  }
})

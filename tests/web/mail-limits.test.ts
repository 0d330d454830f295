import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { startProof } from '../../src/accounts/identity/proofs.ts'
import { createOperator } from '../../src/accounts/operators/operators.ts'
import type { Mail } from '../../src/accounts/ports.ts'
import { startApp, type App } from '../../src/app/app.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'
import { operatorsDeps } from './operator.ts'

let service: Service
let restarted: App | undefined
afterEach(async () => {
  await restarted?.stop()
  restarted = undefined
  await service.stop()
})

/** Starts the service again with the same data folder, as after a restart. */
async function restart(): Promise<Visitor> {
  await service.app.stop()
  const { config } = service
  const ports = { listen: { ...config.listen, port: 0 }, appListen: { ...config.appListen, port: 0 } }
  restarted = await startApp({ ...config, ...ports }, { log: () => undefined })
  return new Visitor(restarted.config.appUrl)
}

test('a restart does not reset the email limits of an address or network', async () => {
  let visitor: Visitor
  ;({ service, visitor } = await startWeb())
  const ask = async (email: string): Promise<number> => (await visitor.post('/sign-in', { email })).status
  for (let letter = 0; letter < 3; letter++) expect(await ask('often@example.com')).toBe(303)
  for (let letter = 0; letter < 16; letter++) expect(await ask(`a${letter}@example.com`)).toBe(303)
  visitor = await restart()
  expect(await ask('often@example.com')).toBe(422)
  expect(await ask('one-more@example.com')).toBe(303)
  expect(await ask('too-many@example.com')).toBe(429)
})

test('an address gets at most five emails, for any number of requests, networks, and nodes', async () => {
  ;({ service } = await startWeb())
  const letters: Mail[] = []
  const sendMail = async (mail: Mail): Promise<void> => void letters.push(mail)
  const { clock, random, pepper } = service.accountsDeps
  // Like nodes, they share only the store.
  const ask = (network: string) =>
    startProof(
      { store: service.store, clock, random, pepper, sendMail, appUrl: 'http://app.example' },
      'victim@example.com',
      'sign_in',
      { network },
    )
  await Promise.all(Array.from({ length: 40 }, (_, index) => ask(`198.51.100.${index}`)))
  expect(letters.length).toBe(5)
  expect(await ask('203.0.113.7')).toMatchObject({ tooMany: 'address' })
})

test('networks are stored only as digests', async () => {
  ;({ service } = await startWeb({ settings: { app_listen: { port: 0, trusted_proxies: 1 } } }))
  const visitor = new Visitor(service.config.appUrl)
  const from = { 'x-forwarded-for': '203.0.113.77' }
  expect((await visitor.post('/sign-in', { email: 'a@example.com' }, from)).status).toBe(303)
  for (const file of ['svc-router.db', 'svc-router.db-wal'])
    expect(readFileSync(`${service.config.dataDir}/${file}`).includes('203.0.113')).toBe(false)
})

/** Headers of a request from another network. */
const from = (host: number): Record<string, string> => ({ 'x-forwarded-for': `203.0.113.${host}` })
const behindProxy = { app_listen: { port: 0, trusted_proxies: 1 } }

test.each([
  ['an account', '/sign-in', '/account/setup'],
  ['the console', '/operator/sign-in', '/operator/sign-in'],
])('requests by a stranger do not keep the owner of an address from %s', async (_where, door, firstDoor) => {
  const clock = new SkippingClock()
  ;({ service } = await startWeb({ settings: behindProxy, clock }))
  const email = 'owner@example.com'
  await createOperator(operatorsDeps(service), email, 'admin')
  const reader = new Visitor(service.config.appUrl)
  const newest = async (shape: RegExp): Promise<string> =>
    shape.exec(await (await reader.get('/dev/outbox')).text())![0].replaceAll('&amp;', '&')
  const ask = async (visitor: Visitor, host: number): Promise<number> =>
    (await visitor.postOnly(door, { email }, from(host))).status
  const owner = new Visitor(service.config.appUrl, '/nowhere')
  const enter = async (visitor: Visitor, path: string, host: number): Promise<number> => {
    const asked = await visitor.postOnly(path, { email }, from(host))
    expect(asked.status).toBe(303)
    const code = await newest(/\b\d{6}\b|\b\d{3} \d{3}\b/)
    return (await visitor.postOnly(asked.headers.get('location')!.split('?')[0]!, { code }, from(host))).status
  }
  await enter(owner, firstDoor, 1)
  owner.cookie = ''
  await clock.skip(11 * 60_000)

  // One stranger is limited, and the owner can still sign in, in the usual browser or a new one in another network.
  const stranger = new Visitor(service.config.appUrl)
  const answers: number[] = []
  for (let index = 0; index < 8; index++) answers.push(await ask(stranger, 66))
  expect(answers).toEqual([303, 303, 303, 422, 422, 422, 422, 422])
  expect(await enter(owner, door, 1)).toBe(303)
  expect(await enter(new Visitor(service.config.appUrl), door, 2)).toBe(303)

  // Many strangers use up the limit of the mailbox all day, but one email always works, and the owner's browser can
  // sign in.
  owner.cookie = ''
  let sent = 0
  await clock.skip(11 * 60_000)
  for (let round = 0; round < 30; round++) {
    await clock.skip(9 * 60_000)
    for (let host = 100; host < 108; host++) if ((await ask(stranger, host)) === 303) sent += 1
    const link = await newest(/(?:\/operator)?\/sign-in\/link\?token=[\w-]+/)
    const shown = await reader.get(link)
    expect(shown.status).toBe(200)
  }
  expect(sent).toBeLessThan(20 + 30 + 5)
  expect(await enter(owner, door, 1)).toBe(303)
})

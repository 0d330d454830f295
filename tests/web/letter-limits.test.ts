import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { startProof } from '../../src/accounts/proofs.ts'
import { startApp, type App } from '../../src/app.ts'
import type { Mail } from '../../src/accounts/ports.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'

let service: Service
let restarted: App | undefined
afterEach(async () => {
  await restarted?.stop()
  restarted = undefined
  await service.stop()
})

/** The service once more over the same data folder, as after a restart. */
async function restart(): Promise<Visitor> {
  await service.app.stop()
  const { config } = service
  const ports = { listen: { ...config.listen, port: 0 }, appListen: { ...config.appListen, port: 0 } }
  restarted = await startApp({ ...config, ...ports }, { log: () => undefined })
  return new Visitor(restarted.config.appUrl)
}

test('a restart gives no address and no network new letters', async () => {
  let visitor: Visitor
  ;({ service, visitor } = await startWeb())
  const ask = async (email: string): Promise<number> => (await visitor.post('/sign-in', { email })).status
  for (let letter = 0; letter < 5; letter++) expect(await ask('often@example.com')).toBe(303)
  for (let letter = 0; letter < 14; letter++) expect(await ask(`a${letter}@example.com`)).toBe(303)
  visitor = await restart()
  expect(await ask('often@example.com')).toBe(422)
  expect(await ask('one-more@example.com')).toBe(303)
  expect(await ask('too-many@example.com')).toBe(429)
})

test('however many ask for one address at once, from wherever and on whichever node, it gets five letters at most', async () => {
  ;({ service } = await startWeb())
  const letters: Mail[] = []
  const sendMail = async (mail: Mail): Promise<void> => void letters.push(mail)
  const { clock, random, pepper } = service.plane
  // Nothing is shared but the store, as between nodes.
  const ask = (network: string) =>
    startProof(
      { store: service.store, clock, random, pepper, sendMail, appUrl: 'http://app.example' },
      'victim@example.com',
      'sign_in',
      { network },
    )
  await Promise.all(Array.from({ length: 40 }, (_, index) => ask(`198.51.100.${index}`)))
  expect(letters.length).toBeLessThanOrEqual(5)
  expect(await ask('203.0.113.7')).toMatchObject({ tooMany: 'address' })
})

test('of networks nothing is kept but digests', async () => {
  ;({ service } = await startWeb({ settings: { app_listen: { port: 0, trusted_proxies: 1 } } }))
  const visitor = new Visitor(service.config.appUrl)
  const from = { 'x-forwarded-for': '203.0.113.77' }
  expect((await visitor.post('/sign-in', { email: 'a@example.com' }, from)).status).toBe(303)
  for (const file of ['svc-router.db', 'svc-router.db-wal'])
    expect(readFileSync(`${service.config.dataDir}/${file}`).includes('203.0.113')).toBe(false)
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import { mintKey } from '../../src/domain/keys.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import type { Service } from '../service.ts'
import { startWeb, type Visitor } from './browser-less.ts'

let service: Service
let visitor: Visitor
beforeAll(async () => {
  ;({ service, visitor } = await startWeb())
})
afterAll(() => service.stop())

const send = async (key: string): Promise<[number, string]> => {
  const response = await visitor.post('/leaked-key', { key })
  return [response.status, await response.text()]
}

test('a key found in any text is revoked within seconds, its owner is told, and the key is shown nowhere', async () => {
  await service.addEmail('owner@example.com')
  const { key } = await service.addNamedKey('laptop')
  const text = key.reveal()
  const [status, page] = await send(`OPENAI_API_KEY="${text}" # do not commit`)
  expect([status, page.includes('The key is revoked'), page.includes(text)]).toEqual([200, true, false])
  await expect
    .poll(async () => (await service.chat({}, { authorization: `Bearer ${text}` })).status, { timeout: 5000 })
    .toBe(401)
  const outbox = await (await visitor.get('/dev/outbox')).text()
  expect(outbox).toContain('Your svc-router key was found in public and has been revoked')
  expect(outbox).toContain('laptop')
  expect(outbox).not.toContain(text)
  expect(JSON.stringify(service.events)).not.toContain(text)
  expect((await send(text))[1]).toContain('It was already revoked')
})

test('every key in a text is revoked, and the page says how many', async () => {
  const { key } = await service.addNamedKey('second')
  const unknown = mintKey(systemRandom()).reveal()
  expect((await send(`${unknown} ${key.reveal()}`))[1]).toContain('The key is revoked')
})

test('an unknown key and a text without a key change nothing', async () => {
  expect((await send(mintKey(systemRandom()).reveal()))[1]).toContain('does not belong to any account')
  const [status, page] = await send('sk-canary-of-another-service')
  expect([status, page.includes('does not contain one of our keys'), page.includes('canary')]).toEqual([
    422,
    true,
    false,
  ])
})

test('the tries of one network are limited', async () => {
  const statuses: number[] = []
  // The limit is 60 in a fixed span, which may end in between.
  for (let count = 0; count < 121 && statuses.at(-1) !== 429; count++) statuses.push((await send('x'))[0])
  expect(statuses).toContain(429)
})

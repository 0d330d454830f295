import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ServiceError } from '../../../src/domain/errors.ts'
import { FakeGateway } from '../fake-gateway.ts'
import { settled } from '../manual-clock.ts'

const body = { stream: true, messages: [{ role: 'user', content: 'Hi' }] }

/** A request whose first backend was called. */
async function begun(gateway: FakeGateway): Promise<{ readonly refusal: Promise<unknown> }> {
  const refusal = gateway.answer('openai-chat', body).then(
    () => undefined,
    (error: unknown) => error,
  )
  await settled()
  expect(gateway.backends[0]!.requests).toHaveLength(1)
  return { refusal }
}

test('no further backend is called once the key is no longer valid', async () => {
  const gateway = new FakeGateway(['openai-chat', 'openai-chat'])
  const { refusal } = await begun(gateway)
  gateway.recheck = () => {
    throw new ServiceError('key_revoked')
  }
  gateway.backends[0]!.head(500)
  gateway.backends[0]!.end()
  expect(await refusal).toMatchObject({ code: 'key_revoked' })
  expect(gateway.backends[1]!.requests).toEqual([])
  expect(gateway.settled).toMatchObject([{ outcome: { charged: 0, errorCode: 'key_revoked' } }])
})

test('a backend that is no longer available is skipped, and the next one answers', async () => {
  const gateway = new FakeGateway(['openai-chat', 'openai-chat', 'openai-chat'])
  const { refusal } = await begun(gateway)
  gateway.stillServes = ({ id }) => id !== 'b1'
  gateway.backends[0]!.head(503)
  gateway.backends[0]!.end()
  await settled()
  expect(gateway.backends.map(({ requests }) => requests.length)).toEqual([1, 0, 1])
  gateway.backends[2]!.head(503)
  gateway.backends[2]!.end()
  await refusal
})

test('the first attempt checks the grant, too', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  gateway.recheck = (principal) => ({ ...principal, accountId: 'another' })
  await expect(gateway.answer('openai-chat', body)).rejects.toMatchObject({ code: 'key_inactive' })
  expect(gateway.backends[0]!.requests).toEqual([])
})

test('backends are called in only one place, which checks the grant, and by the test of a connected provider', () => {
  const src = join(import.meta.dirname, '..', '..', '..', 'src')
  const calling = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter(
      (file) => file.endsWith('.ts') && /\b(?:backend|target)\.call\(/.test(readFileSync(join(src, file), 'utf8')),
    )
    .toSorted()
  expect(calling).toEqual(['gateway/request/attempt.ts', 'providers/test-upstream.ts'])
})

import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { mintKey } from '../../src/domain/keys.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { changeDatabase } from '../change-database.ts'
import { errorOf } from '../refusals.ts'
import { Service } from '../service.ts'
import { shareService } from '../shared-service.ts'
import { readAnswer, type Answer } from '../wire.ts'

const clock = new SkippingClock()
const share = shareService({ formats: ['openai-chat'], clock })
let service: Service

beforeEach(async () => {
  service = await share()
})

describe('malformed keys are detected without the store (contract 3.3)', () => {
  test.each([
    ['no header', null],
    ['an empty header', ''],
    ['only the scheme', 'Bearer'],
    ['the scheme and a space', 'Bearer '],
  ])('with %s, the key is missing', async (_name, header) => {
    const answer = await models(header)
    expect(answer.status).toBe(401)
    expect(errorOf(answer).code).toBe('key_missing')
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="svc-router"')
  })

  test.each([
    ['another scheme', 'Basic dXNlcjpwYXNz', 'must be "Bearer" followed by one key'],
    ['two keys in one header', 'Bearer KEY KEY', 'must be "Bearer" followed by one key'],
    ['quotes around the key', 'Bearer "KEY"', 'quotes or brackets'],
    ['the name of a variable', 'Bearer $SVC_ROUTER_KEY', 'name of a variable'],
    ['a truncated key', 'Bearer CUT', 'checksum'],
    ['an Anthropic key', 'Bearer sk-ant-api03-0123456789', 'Anthropic'],
    ['an OpenAI key', 'Bearer sk-proj-0123456789', 'OpenAI'],
    ['other text', 'Bearer hello', 'not a svc-router key'],
    ['a database statement', "Bearer ' or 1=1; --", 'must be "Bearer" followed by one key'],
    ['30,000 characters', `Bearer sk_svc_${'a'.repeat(30_000)}`, 'checksum'],
  ])('with %s, the key is malformed even while the store is down', async (_name, header, reason) => {
    await changeDatabase(service, 'alter table keys rename to keys_away')
    const answer = await models(header.replaceAll('KEY', service.key).replace('CUT', service.key.slice(0, 40)))
    expect(answer.status).toBe(401)
    const error = errorOf(answer)
    expect(error.code).toBe('key_malformed')
    expect(error.message).toContain(reason)
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="svc-router", error="invalid_token"')
    expect(answer.text).not.toContain(service.key.slice(0, 20))
  })

  test('a well-formed key that does not exist is inactive', async () => {
    const answer = await models(`Bearer ${mintKey(systemRandom()).reveal()}`)
    expect(answer.status).toBe(401)
    expect(errorOf(answer).code).toBe('key_inactive')
  })

  test.each(['bearer', 'BEARER', 'Bearer  '])('the scheme may be written as "%s"', async (scheme) => {
    expect((await models(`${scheme} ${service.key}`)).status).toBe(200)
  })
})

describe("a key in x-api-key, as Anthropic's clients send it", () => {
  const sent = (headers: Record<string, string>): Promise<Answer> => models(null, headers)

  test('x-api-key works like a Bearer token', async () => {
    expect((await sent({ 'x-api-key': service.key })).status).toBe(200)
    expect((await sent({ 'x-api-key': `  ${service.key} ` })).status).toBe(200)
  })

  test.each(['sk-ant-api03-0123456789', 'sk_svc_mistyped'])('%s in x-api-key is malformed', async (key) => {
    const answer = await sent({ 'x-api-key': key })
    expect(answer.status).toBe(401)
    expect(errorOf(answer).code).toBe('key_malformed')
  })

  test('an empty x-api-key counts as absent', async () => {
    expect(errorOf(await sent({ 'x-api-key': ' ' })).code).toBe('key_missing')
    expect((await sent({ 'x-api-key': '', authorization: `Bearer ${service.key}` })).status).toBe(200)
  })

  test.each(['Bearer KEY', 'bearer  KEY', 'Bearer', ''])(
    'with x-api-key and the authorization "%s", the key is unambiguous',
    async (header) => {
      const authorization = header.replace('KEY', service.key)
      expect((await sent({ 'x-api-key': service.key, authorization })).status).toBe(200)
    },
  )

  test('a second, different key is rejected even if either is valid, without revealing either', async () => {
    const other = await service.addKey(service.account.id)
    for (const [apiKey, bearer] of [
      [service.key, other],
      ['sk-ant-api03-0123456789', service.key],
      [service.key, 'sk-ant-api03-0123456789'],
    ] as const) {
      const answer = await sent({ 'x-api-key': apiKey, authorization: `Bearer ${bearer}` })
      expect(answer.status).toBe(400)
      expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', param: 'x-api-key', source: 'client' })
      expect(errorOf(answer).message).toContain('Two different keys were sent')
      for (const key of [apiKey, bearer]) expect(answer.text).not.toContain(key.slice(0, 20))
    }
  })
})

describe('the states of a key', () => {
  test.each([
    ['disabled', `update keys set state = 'disabled'`, 'key_inactive'],
    ['expired', 'update keys set ends_at_ms = 1', 'key_inactive'],
    ['of a suspended account', 'update accounts set suspended = 1', 'key_inactive'],
    ['revoked', `update keys set state = 'revoked'`, 'key_revoked'],
    ['retiring, past its end', `update keys set state = 'retiring', ends_at_ms = 1`, 'key_revoked'],
  ])('a key that is %s is rejected', async (_name, change, code) => {
    await changeDatabase(service, change)
    const answer = await models()
    expect(answer.status).toBe(401)
    expect(errorOf(answer).code).toBe(code)
  })

  test('a retiring key works until its end', async () => {
    await changeDatabase(service, `update keys set state = 'retiring', ends_at_ms = ${Date.now() + 60_000}`)
    expect((await models()).status).toBe(200)
  })

  test('a revocation takes effect within a second, permanently', async () => {
    const { key, stored } = await service.addAccount('leaver', 'max')
    expect((await models(`Bearer ${key}`)).status).toBe(200)
    await service.revoke(stored.id)
    const revokedMs = performance.now()
    await expect.poll(async () => (await models(`Bearer ${key}`)).status, { timeout: 5_000, interval: 20 }).toBe(401)
    expect(performance.now() - revokedMs).toBeLessThan(1_000)
    expect(errorOf(await models(`Bearer ${key}`)).code).toBe('key_revoked')
  })

  test('after an immediate rotation the old key is revoked and the account continues with the new one', async () => {
    const { stored, key } = await service.addAccount('rotator', 'max')
    await service.rotate(stored.id)
    expect(errorOf(await models(`Bearer ${key}`)).code).toBe('key_revoked')
  })
})

describe('only the address that tries many keys is limited', () => {
  test('after 120 invalid keys in a minute an address gets 429, while a valid key from there is still answered', async () => {
    // Other tests sent invalid keys from this address, too.
    service = await Service.start({ formats: ['openai-chat'], clock })
    onTestFinished(() => service.stop())
    const codes: number[] = []
    // All within one minute: the limiter counts in minutes of the clock.
    clock.startMinute()
    for (let attempt = 0; attempt < 121; attempt++) codes.push((await models(`Bearer ${attempt}`)).status)
    expect(codes.slice(0, 120).every((status) => status === 401)).toBe(true)
    expect(codes[120]).toBe(429)
    const answer = await models('Bearer once-more')
    expect(answer.status).toBe(429)
    const seconds = answer.headers.get('retry-after')
    expect(Number(seconds)).toBeGreaterThanOrEqual(1)
    expect(Number(seconds)).toBeLessThanOrEqual(60)
    expect(errorOf(answer).message.endsWith(`Please try again in ${seconds}s.`)).toBe(true)
    expect((await models()).status).toBe(200)
  })
})

/** Requests the model list with the valid key or with the given header; null sends none. */
async function models(given?: string | null, more: Record<string, string> = {}): Promise<Answer> {
  const authorization = given === undefined ? `Bearer ${service.key}` : given
  const headers: Record<string, string> = { 'user-agent': 'svc-router-tests/1.0', ...more }
  if (authorization !== null) headers['authorization'] = authorization
  return readAnswer(await fetch(`${service.baseUrl}/models`, { headers }))
}

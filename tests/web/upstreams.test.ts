import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import type { Service } from '../service.ts'
import { startWeb, type Visitor } from './browser-less.ts'

const canary = 'sk-canary-0000111122223333abcd'
let service: Service
let visitor: Visitor
beforeAll(async () => {
  ;({ service, visitor } = await startWeb())
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  const { token } = await openSession(accountsDeps, service.account.id, { method: 'link', agent: 'Tests' })
  visitor.cookie = `svc_session=${token.reveal()}`
})
afterAll(() => service.stop())

const path = '/account/upstreams'
const own = (): Record<string, string> => ({
  provider: 'custom',
  model: 'own-model',
  base_url: service.providers[0]!.baseUrl,
  format: 'openai-chat',
  credential: canary,
})

describe('providers', () => {
  test('a provider is connected, tested, used first, and removed; its credential is encrypted and shows only its last characters', async () => {
    expect((await visitor.post(path, own())).headers.get('location')).toBe(`${path}?done=provider-added`)
    const page = await (await visitor.get(path)).text()
    expect(page).toContain('••••abcd')
    expect(page).not.toContain('canary')
    const [upstream] = await service.store.listUpstreams(service.account.id)
    expect(JSON.stringify(upstream)).not.toContain('canary')

    const tested = await (await visitor.post(`${path}/${upstream!.id}/test`)).text()
    expect(tested).toContain('The provider answered.')
    await expect
      .poll(async () => (await service.chat()).headers.get('x-svc-router-upstream'), { timeout: 3000 })
      .toBe(upstream!.id)

    // After the test request that connecting sends.
    service.providers[0]!.script([{ do: 'status', status: 401 }])
    const rejected = await (await visitor.post(`${path}/${upstream!.id}/test`)).text()
    expect(rejected).toContain('rejected the credential')

    await visitor.post(`${path}/${upstream!.id}/remove`)
    expect(await service.store.listUpstreams(service.account.id)).toEqual([])
    expect((await visitor.post(`${path}/${upstream!.id}/remove`)).status).toBe(404)
  })

  test('a provider that fails its test is saved only if requested', async () => {
    service.providers[0]!.script([
      { do: 'status', status: 401, body: '{"error":{"message":"Bad key sk-canary-0000111122223333abcd"}}' },
    ])
    const failed = await visitor.post(path, own())
    const text = await failed.text()
    expect(failed.status).toBe(422)
    expect(text).toContain('rejected the credential')
    expect(text).toContain('Message from the provider: Bad key')
    expect(text).toContain('Save anyway')
    expect(text).not.toContain('canary')
    expect(await service.store.listUpstreams(service.account.id)).toEqual([])
    expect((await visitor.post(path, { ...own(), base_url: 'http://127.0.0.1:9/v1' })).status).toBe(422)
    expect(await service.store.listUpstreams(service.account.id)).toEqual([])

    const saved = await visitor.post(path, { ...own(), base_url: 'http://127.0.0.1:9/v1', untested: 'yes' })
    expect(saved.headers.get('location')).toBe(`${path}?done=provider-added`)
    const [upstream] = await service.store.listUpstreams(service.account.id)
    await visitor.post(`${path}/${upstream!.id}/remove`)
  })

  test('timeouts and an extra header are set while connecting, and applied', async () => {
    await visitor.post(path, { ...own(), timeout_first_content: '300s', headers: 'x-team=blue' })
    const [upstream] = await service.store.listUpstreams(service.account.id)
    expect(upstream).toMatchObject({ timeouts: { firstContentMs: 300_000 }, headers: { 'x-team': 'blue' } })
    expect(service.providers[0]!.captured().at(-1)?.headers['x-team']).toBe('blue')
    await visitor.post(`${path}/${upstream!.id}/remove`)
  })

  test.each([
    [{ timeout_idle: 'soon' }, 'Enter a duration'],
    [{ headers: 'cookie=a' }, 'cannot be an extra header'],
    [{ provider: 'opnai' }, 'Choose a provider from the list'],
    [{ model: '' }, 'Enter the provider’s name for the model'],
    [{ base_url: '' }, 'needs the base URL of its API'],
    [{ base_url: 'ftp://x' }, 'Enter an http or https URL'],
    [{ base_url: `https://x.example/v1?key=${canary}` }, 'seems to contain a credential'],
    [{ format: 'soap' }, 'Choose a format from the list'],
    [{ auth_header: 'no header' }, 'A credential cannot be sent in this header'],
    [{ auth_header: 'Content-Length' }, 'A credential cannot be sent in this header'],
    [{ model: 'two\nlines' }, 'Enter the provider’s name for the model'],
    [{ model: '\u202Eledom' }, 'Enter the provider’s name for the model'],
    [{ region: '!' }, 'This is not the name of a region'],
    [{ provider: 'openai', base_url: '', credential: '' }, 'OpenAI needs a credential'],
    [{ credential: `${canary} two words` }, 'contains invalid characters'],
    [
      { provider: 'vertex', base_url: '', credential: `{"type":"${canary}"}` },
      'not the JSON key of a Google service account',
    ],
  ])('an error is shown at its field and never shows the credential: %o', async (change, sentence) => {
    const response = await visitor.post(path, { ...own(), ...change })
    const text = await response.text()
    expect(response.status).toBe(422)
    expect(text).toContain(sentence)
    expect(text).toContain('aria-invalid="true"')
    expect(text).not.toContain('canary')
    expect(await service.store.listUpstreams(service.account.id)).toEqual([])
  })
})

import { beforeEach, describe, expect, test } from 'vitest'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { createGoogleAuthenticator, type FetchedToken } from '../../../src/providers/auth/google-token.ts'
import { testUpstream } from '../../../src/providers/test-upstream.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { ManualClock, settled } from '../../gateway/manual-clock.ts'
import { accountFile, TokenEndpoint } from '../google-account.ts'
import { bugs, openBackend, openPools, run, serveHttp, simulate } from '../support.ts'

const request = { origin: 'https://aiplatform.googleapis.com', path: '/v1/x', body: '{}' }
const hourMs = 3_600_000

beforeEach(() => {
  bugs.length = 0
})

describe('a token', () => {
  /** An authenticator whose fetches the test answers. */
  function open() {
    const clock = new ManualClock()
    const fetches: (PromiseWithResolvers<FetchedToken> & { signal: AbortSignal })[] = []
    const authenticator = createGoogleAuthenticator(clock, (signal) => {
      const fetch = { ...Promise.withResolvers<FetchedToken>(), signal }
      fetches.push(fetch)
      return fetch.promise
    })
    const grant = (token: string, lifeMs = hourMs): void => fetches.at(-1)!.resolve({ token, lifeMs })
    return { clock, fetches, grant, ask: () => authenticator.headersFor(request) }
  }

  test('concurrent requests share one fetch, and later requests get the cached token synchronously', async () => {
    const { fetches, grant, ask, clock } = open()
    const waiting = [ask(), ask(), ask()].map((each) => Promise.resolve(each))
    grant('one')
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 3 }, () => ['authorization', 'Bearer one']))
    expect(ask()).toEqual(['authorization', 'Bearer one'])
    expect(fetches).toHaveLength(1)
    expect(clock.waiting).toBe(0)
  })

  test('it is renewed shortly before it expires, while requests continue with the old one', async () => {
    const { clock, fetches, grant, ask } = open()
    const first = ask()
    grant('one')
    await first
    await clock.advance(hourMs - 300_001)
    void ask()
    expect(fetches).toHaveLength(1)
    await clock.advance(1)
    expect(ask()).toEqual(['authorization', 'Bearer one'])
    void ask()
    expect(fetches).toHaveLength(2)
    grant('two')
    await settled()
    expect(ask()).toEqual(['authorization', 'Bearer two'])
  })

  test('if renewal fails, the token is used until it expires, with a retry every 30 s, and then requests fail', async () => {
    const { clock, fetches, grant, ask } = open()
    const first = ask()
    grant('one')
    await first
    await clock.advance(hourMs - 200_000)
    void ask()
    fetches.at(-1)!.reject(new UpstreamError('unreachable'))
    await settled()
    expect(ask()).toEqual(['authorization', 'Bearer one'])
    expect(fetches).toHaveLength(2)
    await clock.advance(30_000)
    void ask()
    expect(fetches).toHaveLength(3)
    fetches.at(-1)!.reject(new UpstreamError('unreachable'))
    await clock.advance(140_000)
    const late = ask()
    expect(late).toBeInstanceOf(Promise)
    fetches.at(-1)!.reject(new UpstreamError('rejected_credentials'))
    await expect(late).rejects.toMatchObject({ outcome: 'rejected_credentials' })
  })

  test('a fetch that takes more than 5 s is aborted, and the next request starts another', async () => {
    const { clock, fetches, grant, ask } = open()
    const waiting = Promise.resolve(ask()).catch((error: unknown) => error)
    await clock.advance(4_999)
    expect(fetches[0]!.signal.aborted).toBe(false)
    await clock.advance(1)
    expect(await waiting).toMatchObject({ outcome: 'timeout' })
    expect(fetches[0]!.signal.aborted).toBe(true)
    const again = ask()
    grant('two')
    expect(await again).toEqual(['authorization', 'Bearer two'])
    expect([fetches.length, clock.waiting]).toEqual([2, 0])
  })

  test('a token with too short a lifetime is fetched for each request', async () => {
    const { fetches, grant, ask } = open()
    for (const token of ['one', 'two']) {
      const waiting = ask()
      grant(token, 10_000)
      expect(await waiting).toEqual(['authorization', `Bearer ${token}`])
    }
    expect(fetches).toHaveLength(2)
  })
})

describe('a backend with a service account', () => {
  const credential = new Secret(JSON.stringify(accountFile))

  async function open() {
    const endpoint = new TokenEndpoint()
    const { baseUrl } = await serveHttp(endpoint.listener)
    const provider = await simulate({ capture: true })
    const pools = openPools({ googleTokenUrl: `${baseUrl}/token` })
    const spec = { format: 'gemini', signing: 'google', credential, authHeader: null } as const
    const backend = openBackend(pools, provider.baseUrl, spec)
    return { endpoint, provider, pools, backend, spec }
  }

  test('a signed assertion is exchanged for a token, which all of its backends share', async () => {
    const { endpoint, provider, pools, backend, spec } = await open()
    const other = openBackend(pools, provider.baseUrl, { ...spec, id: 'other', model: 'another' })
    const results = await Promise.all(
      [backend, other, backend].map((each) => testUpstream(each, { clock: systemClock(), requestId: 'req_1' })),
    )
    expect(results.map(({ outcome }) => outcome)).toEqual(['answered', 'answered', 'answered'])
    expect(endpoint.claims).toHaveLength(1)
    expect(endpoint.claims[0]).toMatchObject({
      iss: accountFile.client_email,
      aud: 'https://oauth2.googleapis.com/token',
      scope: 'https://www.googleapis.com/auth/cloud-platform',
    })
    for (const { headers } of provider.captured()) expect(headers['authorization']).toBe('Bearer ya29.made-up-token-1')
  })

  test.each([
    [
      { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' } },
      'rejected_credentials',
    ],
    [{ status: 401, body: { error: 'invalid_client' } }, 'rejected_credentials'],
    [{ status: 503, body: {} }, 'server_error'],
    [{ status: 200, body: { token_type: 'Bearer' } }, 'broken'],
    [{ status: 200, body: { access_token: 'two\r\nlines', expires_in: 9 } }, 'broken'],
  ] as const)(
    'the answer %j from Google gives an error category, and nothing is sent to the provider',
    async (refusal, outcome) => {
      const { endpoint, provider, backend } = await open()
      endpoint.refuse = refusal
      const { error } = await run(backend, '{"contents":[]}')
      expect(error?.outcome).toBe(outcome)
      expect(String(error)).toBe(`UpstreamError: ${outcome}`)
      expect(provider.counts().requests).toBe(0)
      expect(endpoint.claims).toHaveLength(1)
      endpoint.refuse = undefined
      expect((await run(backend, '{"contents":[]}')).error).toBeUndefined()
      expect(bugs).toEqual([])
    },
  )

  test('it is unreachable if Google’s token endpoint is', async () => {
    const pools = openPools({ googleTokenUrl: 'http://127.0.0.1:9/token' })
    const spec = { format: 'gemini', signing: 'google', credential, authHeader: null } as const
    const { error, call } = await run(openBackend(pools, 'http://127.0.0.1:9/v1', spec))
    expect([error?.outcome, call.isSent]).toEqual(['unreachable', false])
  })

  test('assertions are sent only to Google, whatever the key file says', () => {
    const elsewhere = new Secret(JSON.stringify({ ...accountFile, token_uri: 'http://169.254.169.254/token' }))
    const open = () => openBackend(openPools(), 'http://127.0.0.1:9/v1', { signing: 'google', credential: elsewhere })
    expect(open).toThrow(TypeError)
  })
})

import type { ServiceAccount } from '../../domain/cloud-credentials.ts'
import { objectOf } from '../../domain/json.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Authenticator } from './authenticator.ts'

const googleTokenUrl = 'https://oauth2.googleapis.com/token'
const scope = 'https://www.googleapis.com/auth/cloud-platform'
/** How long a request waits for a token. */
const fetchLimitMs = 5_000
/** A token is renewed in the background from this long before its expiry… */
const renewBeforeMs = 300_000
/** …and no longer used from this long before: a request takes time to arrive. */
const unusableBeforeMs = 30_000
/** Pause after a failed background renewal. */
const retryAfterMs = 30_000
/** Google's tokens live an hour. No answer makes us cache one for longer than this. */
const longestLifeMs = 12 * 3_600_000
const longestTokenCharacters = 16_384

/** An access token and its remaining lifetime. */
export interface FetchedToken {
  readonly token: string
  readonly lifeMs: number
}

/**
 * Authenticates with an access token from `fetch`: cached until shortly before its expiry and renewed in time, one
 * fetch at a time, at most 5 s each.
 */
export function createGoogleAuthenticator(
  clock: Clock,
  fetch: (signal: AbortSignal) => Promise<FetchedToken>,
): Authenticator {
  let headers: readonly string[] = []
  // Expiry by both clocks, whichever is sooner: the wall clock may be set, and the monotonic clock stops during sleep.
  let endsAt = { wallMs: Number.NEGATIVE_INFINITY, monotonicMs: Number.NEGATIVE_INFINITY }
  let retryAtMs = Number.NEGATIVE_INFINITY
  let fetching: Promise<readonly string[]> | undefined

  const fetchOnce = async (): Promise<readonly string[]> => {
    const giveUp = new AbortController()
    const limit = Promise.withResolvers<never>()
    const timer = clock.after(fetchLimitMs, () => {
      giveUp.abort()
      limit.reject(new UpstreamError('timeout'))
    })
    try {
      const { token, lifeMs } = await Promise.race([fetch(giveUp.signal), limit.promise])
      headers = ['authorization', `Bearer ${token}`]
      endsAt = { wallMs: clock.nowMs() + lifeMs, monotonicMs: clock.monotonicMs() + lifeMs }
      return headers
    } finally {
      timer.cancel()
      fetching = undefined
    }
  }

  return {
    headersFor() {
      const nowMs = clock.monotonicMs()
      const leftMs = Math.min(endsAt.wallMs - clock.nowMs(), endsAt.monotonicMs - nowMs)
      if (leftMs <= unusableBeforeMs) return (fetching ??= fetchOnce())
      if (leftMs <= renewBeforeMs && fetching === undefined && nowMs >= retryAtMs) {
        fetching = fetchOnce()
        fetching.catch(() => {
          // The current token is still valid; once it is not, a request waits for the next one and gets the error.
          retryAtMs = clock.monotonicMs() + retryAfterMs
        })
      }
      return headers
    },
  }
}

/**
 * Requests an access token for a service account from Google (contract 21.7). @throws UpstreamError, never with
 * Google's text
 */
export async function fetchGoogleToken(
  account: ServiceAccount,
  signal: AbortSignal,
  tokenUrl = googleTokenUrl,
): Promise<FetchedToken> {
  const { JWT } = await import('google-auth-library')
  const client = new JWT({
    email: account.clientEmail,
    key: account.privateKey,
    keyId: account.privateKeyId,
    scopes: [scope],
    transporterOptions: {
      retryConfig: { retry: 0 },
      // No proxy from the environment: signed assertions go directly to Google.
      noProxy: [/^/],
      fetchImplementation: (_url, init) =>
        fetch(tokenUrl, {
          method: 'POST',
          headers: init?.headers ?? {},
          body: init?.body ?? null,
          redirect: 'error',
          signal,
        }),
    },
  })
  let granted: { access_token?: string | null; expiry_date?: number | null }
  try {
    granted = await client.authorize()
  } catch (error) {
    throw tokenFault(error, signal)
  }
  const { access_token: token, expiry_date: expiresAtMs } = granted
  if (typeof token !== 'string' || token.length > longestTokenCharacters || !/^[\x21-\x7e]+$/.test(token)) {
    throw new UpstreamError('broken')
  }
  const lifeMs = typeof expiresAtMs === 'number' ? expiresAtMs - Date.now() : 0
  return { token, lifeMs: Number.isFinite(lifeMs) ? Math.min(Math.max(0, lifeMs), longestLifeMs) : 0 }
}

function tokenFault(error: unknown, signal: AbortSignal): UpstreamError {
  if (signal.aborted) return new UpstreamError('timeout')
  const status = statusOf(error)
  if (status === undefined) return new UpstreamError('unreachable')
  if (status === 400 || status === 401 || status === 403) return new UpstreamError('rejected_credentials', { status })
  return new UpstreamError('server_error', { status })
}

function statusOf(error: unknown): number | undefined {
  const response: unknown = error instanceof Error && 'response' in error ? error.response : undefined
  const status = objectOf(response)['status']
  return typeof status === 'number' ? status : undefined
}

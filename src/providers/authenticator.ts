import { createHash } from 'node:crypto'
import { BoundedMap } from '../domain/bounded-map.ts'
import type { Clock } from '../domain/clock.ts'
import { readAwsKey, readServiceAccount, type CloudKind } from '../domain/cloud-credentials.ts'
import { createAwsAuthenticator } from './aws-signature.ts'
import { createGoogleAuthenticator, fetchGoogleToken } from './google-token.ts'

/** Authenticators kept at the same time; the one that was not used for longest goes first. */
const maxKept = 1024

/** One request as far as it is authenticated. */
export interface AuthenticatedRequest {
  /** `https://host:port` */
  readonly origin: string
  /** With its query. */
  readonly path: string
  readonly body: Uint8Array | string
}

/** Proves to a provider who asks, where a header that never changes is not enough. */
export interface Authenticator {
  /**
   * Headers for one request, flat: name, value, … At once where nothing has to be waited for.
   * @throws UpstreamError `rejected_credentials`, `unreachable`, `timeout` or `server_error`, also as a rejection
   */
  headersFor(request: AuthenticatedRequest): readonly string[] | Promise<readonly string[]>
}

/** The authenticators of all backends: one for each credential, so that backends of one account share its tokens. */
export interface Authenticators {
  /**
   * The one for that credential; undefined where the text is a key that is simply sent.
   * @throws TypeError where it can neither sign nor be sent
   */
  open(kind: CloudKind, credential: string): Authenticator | undefined
}

export interface AuthenticatorsOptions {
  readonly clock: Clock
  /** Stands in for Google's token endpoint in tests. Never from a configuration or a credential: what is signed goes there. */
  readonly googleTokenUrl?: string | undefined
}

/** Opens nothing yet. */
export function createAuthenticators({ clock, googleTokenUrl }: AuthenticatorsOptions): Authenticators {
  /** By digest, least recently used first. */
  const kept = new BoundedMap<string, Authenticator>(maxKept)

  const create = (kind: CloudKind, credential: string): Authenticator | undefined => {
    if (kind === 'aws') {
      const key = readAwsKey(credential)
      if (key === undefined && credential.startsWith('{')) throw new TypeError('The credential is no AWS key.')
      return key === undefined ? undefined : createAwsAuthenticator(key, clock)
    }
    const account = readServiceAccount(credential)
    if (account === undefined) throw new TypeError('The credential is no key of a Google service account.')
    return createGoogleAuthenticator(clock, (signal) => fetchGoogleToken(account, signal, googleTokenUrl))
  }

  return {
    open(kind, credential) {
      const digest = createHash('sha256').update(`${kind}\n${credential}`).digest('base64url')
      const authenticator = kept.get(digest) ?? create(kind, credential)
      if (authenticator !== undefined) kept.setLast(digest, authenticator)
      return authenticator
    },
  }
}

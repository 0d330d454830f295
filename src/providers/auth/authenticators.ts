import { createHash } from 'node:crypto'
import { readAwsKey, readServiceAccount, type CloudKind } from '../../domain/cloud-credentials.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Authenticator } from './authenticator.ts'
import { createAwsAuthenticator } from './aws-signature.ts'
import { createGoogleAuthenticator, fetchGoogleToken } from './google-token.ts'

/** Maximum number of cached authenticators; the least recently used is evicted. */
const maxCached = 1024

/**
 * The authenticators of all backends: one per credential, so that backends with the same credential share its tokens.
 */
export interface Authenticators {
  /**
   * The authenticator for that credential; undefined if the text is a key that is sent as it is. @throws TypeError if
   * it can neither sign nor be sent
   */
  open(kind: CloudKind, credential: string): Authenticator | undefined
}

export interface AuthenticatorsOptions {
  readonly clock: Clock
  /**
   * Replaces Google's token endpoint in tests. Never taken from a configuration or a credential, because signed
   * assertions are sent there.
   */
  readonly googleTokenUrl?: string | undefined
}

/** Opens no connections yet. */
export function createAuthenticators({ clock, googleTokenUrl }: AuthenticatorsOptions): Authenticators {
  /** By credential digest, least recently used first. */
  const cache = new BoundedMap<string, Authenticator>(maxCached)

  const create = (kind: CloudKind, credential: string): Authenticator | undefined => {
    if (kind === 'aws') {
      const key = readAwsKey(credential)
      if (key === undefined && credential.startsWith('{')) throw new TypeError('The credential is not an AWS key.')
      return key === undefined ? undefined : createAwsAuthenticator(key, clock)
    }
    const account = readServiceAccount(credential)
    if (account === undefined) throw new TypeError('The credential is not a Google service account key.')
    return createGoogleAuthenticator(clock, (signal) => fetchGoogleToken(account, signal, googleTokenUrl))
  }

  return {
    open(kind, credential) {
      const digest = createHash('sha256').update(`${kind}\n${credential}`).digest('base64url')
      const authenticator = cache.get(digest) ?? create(kind, credential)
      if (authenticator !== undefined) cache.setLast(digest, authenticator)
      return authenticator
    },
  }
}

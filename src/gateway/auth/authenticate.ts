import type { Account } from '../../domain/accounts.ts'
import { describeMalformedKey } from '../../domain/describe-malformed-key.ts'
import { type ErrorCode, type ErrorFacts, invalidRequest, ServiceError } from '../../domain/errors.ts'
import { isWellFormedKey, keyLength, playgroundKeyId } from '../../domain/keys.ts'
import type { Plan } from '../../domain/plans.ts'
import type { KnownKey, Principal } from '../ports.ts'
import type { DigestCache } from './digest-cache.ts'
import type { KeyCache } from './key-cache.ts'

/** Length of an Authorization header in the usual form. */
const wholeHeaderChars = 'Bearer '.length + keyLength
const bearer = /^bearer +(\S+) *$/i

export interface AuthenticationDeps {
  readonly keys: KeyCache
  readonly digests: DigestCache
  readonly planById: (id: string) => Plan | undefined
  readonly findAccount: (id: string) => Promise<Account | undefined>
  readonly nowMs: () => number
  /** While the pepper changes: called with a key that was looked up, to hash it with the current pepper, too. */
  readonly rehash?: ((keyId: string, found: string, current: string) => void) | undefined
}

/**
 * Authenticates a request from its `Authorization` and `x-api-key` headers (Anthropic's clients send the latter).
 * Shape and checksum are checked without the store (contract 3.3). Synchronous if the key is cached.
 * @throws ServiceError `key_missing`, `key_malformed`, `key_inactive`, `key_revoked`, `auth_unavailable`;
 * `invalid_request` if the headers carry two different keys
 */
export function authenticate(
  authorization: string | undefined,
  apiKey: string | undefined,
  deps: AuthenticationDeps,
): Principal | Promise<Principal> {
  return authenticateKey(apiKey === undefined ? readBearer(authorization) : readEither(authorization, apiKey), deps)
}

function authenticateKey(key: string, deps: AuthenticationDeps): Principal | Promise<Principal> {
  const digests = deps.digests.get(key)
  const found = digests === undefined ? lookUpUncached(wellFormed(key), deps) : lookUp(digests, deps, 0)
  const recheck = (): Principal | Promise<Principal> => authenticateKey(key, deps)
  if (found instanceof Promise) return found.then((entry) => admitEntry(entry, deps, recheck), unavailable)
  return admitEntry(found, deps, recheck)
}

/**
 * The principal of a signed-in account that sends requests from the app itself, without a key (contract 3.22).
 * @throws ServiceError `key_inactive` if the account is suspended, `auth_unavailable`
 */
export function principalOf(account: Account, parts: Pick<AuthenticationDeps, 'planById' | 'findAccount'>): Principal {
  const { id } = account
  const recheck = async (): Promise<Principal> => {
    const now = await parts.findAccount(id).catch(unavailable)
    if (now === undefined) throw new ServiceError('key_inactive')
    return principalOf(now, parts)
  }
  const plan = planOf(account, playgroundKeyId, parts)
  return { accountId: id, keyId: playgroundKeyId, plan, limits: undefined, recheck }
}

/**
 * The same key may be sent in both headers. Two different keys are rejected, like two `Authorization` headers,
 * because we cannot know which one is meant (contract 3.1).
 */
function readEither(authorization: string | undefined, apiKey: string): string {
  const key = apiKey.trim()
  if (key === '') return readBearer(authorization)
  if (!isBlank(authorization) && readBearer(authorization) !== key) {
    throw invalidRequest('x-api-key', 'Two different keys were sent, in authorization and in x-api-key. Send only one.')
  }
  return key
}

function isBlank(header: string | undefined): boolean {
  return header === undefined || header.trim() === '' || /^bearer *$/i.test(header)
}

function readBearer(header: string | undefined): string {
  if (header?.startsWith('Bearer ') === true && header.length === wholeHeaderChars)
    return header.slice('Bearer '.length)
  if (header === undefined || isBlank(header)) throw new ServiceError('key_missing')
  const match = bearer.exec(header)
  if (match === null) throw malformed('The Authorization header must be "Bearer" followed by one key.')
  return match[1]!
}

function wellFormed(key: string): string {
  if (!isWellFormedKey(key)) throw malformed(describeMalformedKey(key))
  return key
}

/** Looks up a key that is not cached, and caches its digests if it exists. */
async function lookUpUncached(
  key: string,
  { keys, digests, rehash }: AuthenticationDeps,
): Promise<KnownKey | undefined> {
  const all = digests.compute(key)
  for (const digest of all) {
    const entry = await keys.find(digest)
    if (entry === undefined) continue
    digests.set(key, all, digest)
    rehash?.(entry.key.id, digest, all[0]!)
    return entry
  }
  return undefined
}

/** Looks up each digest of a cached key until one is found. */
function lookUp(
  digests: readonly string[],
  deps: AuthenticationDeps,
  index: number,
): KnownKey | undefined | Promise<KnownKey | undefined> {
  const digest = digests[index]
  if (digest === undefined) return undefined
  const found = deps.keys.find(digest)
  if (found === undefined) return lookUp(digests, deps, index + 1)
  if (!(found instanceof Promise)) return found
  return found.then((entry) => entry ?? lookUp(digests, deps, index + 1))
}

/** The principal of a key that was looked up, if the states of key and account allow it (contract 3.6, 3.7). */
function admitEntry(entry: KnownKey | undefined, deps: AuthenticationDeps, recheck: Principal['recheck']): Principal {
  if (entry === undefined) throw new ServiceError('key_inactive')
  const { key, account, limits, budgets } = entry
  const hasEnded = key.endsAtMs !== null && key.endsAtMs <= deps.nowMs()
  if (key.state === 'revoked' || (key.state === 'retiring' && hasEnded)) {
    throw refused('key_revoked', account, key.id)
  }
  if (key.state === 'disabled' || hasEnded) throw refused('key_inactive', account, key.id)
  return { accountId: account.id, keyId: key.id, plan: planOf(account, key.id, deps), limits, budgets, recheck }
}

function planOf(account: Account, keyId: string, { planById }: Pick<AuthenticationDeps, 'planById'>): Plan {
  if (account.suspended) throw refused('key_inactive', account, keyId)
  const plan = planById(account.planId)
  // The plan is missing from the configuration: the operator's mistake, not a problem with the key (contract 5.16).
  if (plan === undefined) throw refused('auth_unavailable', account, keyId, { retryAfterSeconds: 1 })
  return plan
}

/** A rejection of a key whose account is known. */
function refused(code: ErrorCode, { id }: Account, keyId: string, facts?: ErrorFacts): ServiceError {
  return new ServiceError(code, { ...facts, owner: { accountId: id, keyId } })
}

function unavailable(cause: unknown): never {
  throw new ServiceError('auth_unavailable', { retryAfterSeconds: 1, cause })
}

function malformed(reason: string): ServiceError {
  return new ServiceError('key_malformed', { words: { reason } })
}

import { ServiceError } from '../domain/errors.ts'
import { UpstreamError } from '../domain/upstream.ts'
import type { Backend, Backends, Principal } from './ports.ts'

/**
 * Whether a request that was admitted may still call a backend, asked before every upstream call: each attempt, and each
 * sub-call of a fusion (contract 6.18). Answers at once while nothing has changed since it was last asked.
 * @throws ServiceError where the key or account may ask nothing any more, UpstreamError `not_sent` where only this
 * backend may not be used
 */
export type CallGrant = (backend: Backend) => void | Promise<void>

/** For calls that are the service's own, and for those that only stand for calls that are each asked for. */
export const alwaysGranted: CallGrant = () => {}

/** The grant of one request. */
export function callGrant(principal: Principal, backends: Backends): CallGrant {
  return (backend) => {
    const now = principal.recheck()
    return now instanceof Promise
      ? now.then((found) => grantAs(found, principal, backends, backend))
      : grantAs(now, principal, backends, backend)
  }
}

function grantAs(
  now: Principal,
  { accountId, keyId }: Principal,
  backends: Backends,
  backend: Backend,
): void | Promise<void> {
  if (now.accountId !== accountId || now.keyId !== keyId) throw new ServiceError('key_inactive')
  const serves = backends.stillServes(backend, accountId)
  return serves instanceof Promise ? serves.then(assertServes) : assertServes(serves)
}

function assertServes(serves: boolean): void {
  if (!serves) throw new UpstreamError('not_sent')
}

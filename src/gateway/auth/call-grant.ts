import { ServiceError } from '../../domain/errors.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import type { Backend, Backends, CallGrant, Principal } from '../ports.ts'

/** For the service's own calls, and for calls whose sub-calls are each checked. */
export const alwaysGranted = (): void => {}

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

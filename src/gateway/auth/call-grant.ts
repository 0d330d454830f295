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

/** A key never belongs to somebody else than before. @throws ServiceError `key_inactive` */
export function assertSameCaller(now: Principal, before: Principal): void {
  if (now.accountId !== before.accountId || now.keyId !== before.keyId) throw new ServiceError('key_inactive')
}

function grantAs(now: Principal, before: Principal, backends: Backends, backend: Backend): void | Promise<void> {
  assertSameCaller(now, before)
  const serves = backends.stillServes(backend, now.accountId)
  return serves instanceof Promise ? serves.then(assertServes) : assertServes(serves)
}

function assertServes(serves: boolean): void {
  if (!serves) throw new UpstreamError('not_sent')
}

import type { Clock } from '../domain/clock.ts'
import type { IncomingMessage } from 'node:http'
import { clientAddress } from '../domain/client-address.ts'
import { ServiceError } from '../domain/errors.ts'
import { addressGroup } from '../domain/networks.ts'
import { assertAddress } from '../gateway/enforced-limits.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Principal } from '../gateway/ports.ts'
import { AttemptLimiter } from './attempt-limiter.ts'

/** Requests with a bad key from one address, a minute (contract 3.21). */
const badKeysPerMinute = 120

export interface CallersParts {
  readonly gateway: Pick<Gateway, 'authenticate'>
  /** Proxies of the operator's own in front of the API: so many entries at the end of `X-Forwarded-For` are believed. */
  readonly trustedProxies: number
  readonly clock: Clock
}

/** Says who sends a request, and holds back addresses that send bad keys. */
export class Callers {
  readonly #parts: CallersParts
  readonly #badKeys: AttemptLimiter

  constructor(parts: CallersParts) {
    this.#parts = parts
    this.#badKeys = new AttemptLimiter('bad_keys', badKeysPerMinute, 'an address that sends bad keys', parts.clock)
  }

  /** At once where the key is remembered. @throws ServiceError as `Gateway.authenticate`, `key_address_not_allowed`, `rate_limit_exceeded` */
  authenticate(request: IncomingMessage): Principal | Promise<Principal> {
    try {
      const { authorization, 'x-api-key': apiKey } = request.headers
      const found = this.#parts.gateway.authenticate(authorization, apiKey as string | undefined)
      if (!(found instanceof Promise)) return this.#admit(request, found)
      return found
        .then((principal) => this.#admit(request, principal))
        .catch((error: unknown) => this.#refuse(request, error))
    } catch (error) {
      return this.#refuse(request, error)
    }
  }

  #admit(request: IncomingMessage, principal: Principal): Principal {
    if (principal.limits !== undefined) assertAddress(principal.limits, this.#addressOf(request), principal)
    return principal
  }

  #refuse(request: IncomingMessage, error: unknown): never {
    // Only keys that are no good here count: a good one behind the same address is not made to pay for them.
    const isBadKey = error instanceof ServiceError && (error.status === 401 || error.status === 403)
    if (isBadKey) this.#badKeys.take(this.groupOf(request), error.facts.owner)
    throw error
  }

  /** The address that a request counts toward where callers are limited by address. */
  groupOf(request: IncomingMessage): string {
    return addressGroup(this.#addressOf(request))
  }

  #addressOf({ socket, headers }: IncomingMessage): string {
    const { 'x-forwarded-for': forwardedFor = null } = headers
    // Node joins several of them; the types do not know that.
    return clientAddress(socket.remoteAddress ?? '', forwardedFor as string | null, this.#parts.trustedProxies)
  }
}

import type { IncomingMessage } from 'node:http'
import { clientAddress } from '../domain/client-address.ts'
import { ServiceError } from '../domain/errors.ts'
import { assertAddressAllowed } from '../gateway/auth/key-limits.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Principal } from '../gateway/ports.ts'
import type { Clock } from '../runtime/clock.ts'
import { addressGroup } from '../runtime/networks.ts'
import { AttemptLimiter } from './attempt-limiter.ts'

/** Requests per minute with a bad key from one address (contract 3.21). */
const badKeysPerMinute = 120

export interface CallersDeps {
  readonly gateway: Pick<Gateway, 'authenticate'>
  /** The operator's own proxies in front of the API: this many entries at the end of `X-Forwarded-For` are trusted. */
  readonly trustedProxies: number
  readonly clock: Clock
}

/** Identifies the sender of a request, and limits addresses that send bad keys. */
export class Callers {
  readonly #deps: CallersDeps
  readonly #badKeys: AttemptLimiter

  constructor(deps: CallersDeps) {
    this.#deps = deps
    this.#badKeys = new AttemptLimiter(
      'bad_keys',
      badKeysPerMinute,
      'with missing or rejected keys from one address',
      deps.clock,
    )
  }

  /**
   * Synchronous if the key is cached.
   * @throws ServiceError as `Gateway.authenticate`, `key_address_not_allowed`, `rate_limit_exceeded`
   */
  authenticate(request: IncomingMessage): Principal | Promise<Principal> {
    try {
      const { authorization, 'x-api-key': apiKey } = request.headers
      const found = this.#deps.gateway.authenticate(authorization, apiKey as string | undefined)
      if (!(found instanceof Promise)) return this.#admit(request, found)
      return found
        .then((principal) => this.#admit(request, principal))
        .catch((error: unknown) => this.#refuse(request, error))
    } catch (error) {
      return this.#refuse(request, error)
    }
  }

  #admit(request: IncomingMessage, principal: Principal): Principal {
    if (principal.limits !== undefined) assertAddressAllowed(principal.limits, this.#addressOf(request), principal)
    return principal
  }

  #refuse(request: IncomingMessage, error: unknown): never {
    // Only invalid keys count, so that a valid one behind the same address is not limited.
    const isBadKey = error instanceof ServiceError && (error.status === 401 || error.status === 403)
    if (isBadKey) this.#badKeys.take(this.groupOf(request), error.facts.owner)
    throw error
  }

  /** The address group that a request counts toward where limits are per address. */
  groupOf(request: IncomingMessage): string {
    return addressGroup(this.#addressOf(request))
  }

  #addressOf({ socket, headers }: IncomingMessage): string {
    const { 'x-forwarded-for': forwardedFor = null } = headers
    // Node joins repeated headers; its types do not say so.
    return clientAddress(socket.remoteAddress ?? '', forwardedFor as string | null, this.#deps.trustedProxies)
  }
}

// Loaded before the program: requests to one profile are answered without their session, which no setting turns off.
import { CacheSessions } from '../src/gateway/cache/cache-sessions.ts'
import { plainProfile } from './bodies.ts'

// oxlint-disable-next-line typescript/unbound-method
const { begin } = CacheSessions.prototype
CacheSessions.prototype.begin = function (of) {
  return of.profile === plainProfile ? undefined : begin.call(this, of)
}

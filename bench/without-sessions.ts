// Loaded before the program: requests to one profile are answered without their session, which no setting turns off.
import { CacheSessions } from '../src/gateway/cache/cache-sessions.ts'
import { plainProfile } from './bodies.ts'

let sessions: CacheSessions | undefined
// oxlint-disable-next-line typescript/unbound-method
const { begin } = CacheSessions.prototype
CacheSessions.prototype.begin = function (of) {
  if (of.profile === plainProfile) return undefined
  // oxlint-disable-next-line typescript/no-this-alias
  sessions = this
  return begin.call(this, of)
}
// They are written after 250 ms. If that is in another round, its requests would pay for them.
process.on('SIGUSR2', () => void sessions?.[Symbol.asyncDispose]())

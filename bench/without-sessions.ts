// Loaded before the program: requests to one profile are answered without their session, and those to another one do not
// record theirs. No setting does either.
import { CacheSessions } from '../src/gateway/cache/cache-sessions.ts'
import { SessionTurn, type SessionKey } from '../src/gateway/cache/session-turn.ts'
import { SessionWriter } from '../src/gateway/cache/session-writer.ts'
import { plainProfile, unrecordedProfile } from './bodies.ts'

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

const unrecordedEnd = ` ${unrecordedProfile}`
/** Whether the digest is that of a session, which its client named, in the profile that does not record them. */
function isUnrecorded(digest: string): boolean {
  return digest.endsWith(unrecordedEnd)
}

// oxlint-disable-next-line typescript/unbound-method
const { isWaiting } = SessionWriter.prototype
// Whatever waits is not added again.
SessionWriter.prototype.isWaiting = function (session) {
  return isUnrecorded(session) || isWaiting.call(this, session)
}

// oxlint-disable-next-line typescript/unbound-method
const { verdict } = SessionTurn.prototype
SessionTurn.prototype.verdict = function (usage) {
  return isUnrecorded(this.session.digest) ? undefined : verdict.call(this, usage)
}
/** One copy per session: one per turn would cost more than what is measured. */
const withoutId = new WeakMap<SessionKey, SessionKey>()
// The record has a session's id if there is one.
// oxlint-disable-next-line typescript/unbound-method
const getSession = Object.getOwnPropertyDescriptor(SessionTurn.prototype, 'session')!.get!
Object.defineProperty(SessionTurn.prototype, 'session', {
  get(this: SessionTurn) {
    const session = getSession.call(this) as SessionKey
    if (!isUnrecorded(session.digest)) return session
    let unrecorded = withoutId.get(session)
    if (unrecorded === undefined) withoutId.set(session, (unrecorded = { ...session, id: undefined as never }))
    return unrecorded
  },
})

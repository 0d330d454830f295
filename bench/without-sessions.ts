// Loaded before the program: requests to one profile are answered without their session, and those to another one do not
// record theirs. No setting does either. What this itself costs belongs to none of them, so it is little: nothing is
// created or looked up for a turn.
import { CacheSessions } from '../src/gateway/cache/cache-sessions.ts'
import { SessionTurn } from '../src/gateway/cache/session-turn.ts'
import { SessionWriter } from '../src/gateway/cache/session-writer.ts'
import { plainProfile, unrecordedProfile } from './bodies.ts'

let sessions: CacheSessions | undefined
/** The length of the digests of sessions that are not recorded: those of other profiles are shorter. */
let unrecordedLength: number | undefined

// oxlint-disable-next-line typescript/unbound-method
const { begin } = CacheSessions.prototype
CacheSessions.prototype.begin = function (of) {
  if (of.profile === plainProfile) return undefined
  // oxlint-disable-next-line typescript/no-this-alias
  sessions = this
  const begun = begin.call(this, of)
  if (of.profile !== unrecordedProfile || begun === undefined) return begun
  return begun instanceof Promise ? begun.then(withoutId) : withoutId(begun)
}

/** The record has a session's ID if there is one. The client named the session, so its later turns have the same key. */
function withoutId(turn: SessionTurn): SessionTurn {
  const session = turn.session as { id: string | undefined; readonly digest: string }
  if (session.id === undefined) return turn
  session.id = undefined
  unrecordedLength = session.digest.length
  return turn
}

// They are written after 250 ms. If that is in another round, its requests would pay for them.
process.on('SIGUSR2', () => void sessions?.[Symbol.asyncDispose]())

// oxlint-disable-next-line typescript/unbound-method
const { isWaiting } = SessionWriter.prototype
// Whatever waits is not added again.
SessionWriter.prototype.isWaiting = function (session) {
  return session.length === unrecordedLength || isWaiting.call(this, session)
}

// oxlint-disable-next-line typescript/unbound-method
const { verdict } = SessionTurn.prototype
SessionTurn.prototype.verdict = function (usage) {
  return (this.session.id as string | undefined) === undefined ? undefined : verdict.call(this, usage)
}

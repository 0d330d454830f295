import { clientFamilyOf, isAgent, type ClientFamily } from '../../domain/client-family.ts'
import type { Conversation } from '../../domain/conversation.ts'
import type { EventLog } from '../../domain/events.ts'
import { sessionIdPrefix } from '../../domain/session-costs.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import { textChecksum } from '../../runtime/checksum.ts'
import type { Clock } from '../../runtime/clock.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import { hourMs } from '../../runtime/durations.ts'
import type { KeyedDigest } from '../../runtime/keyed-digest.ts'
import type { ModelRequest } from '../ports.ts'
import { findContinued, isBehind, isSeen, type Branch, type Continued, type SessionBranches } from './cached-prefix.ts'
import { digestPrompt, openingDigest, type ReadPrompt } from './prompt-digest.ts'
import { sessionIdentity } from './session-identity.ts'
import { readState, writeState } from './session-state.ts'
import type { CacheSessionStore, StoredCacheSession } from './session-store.ts'
import { SessionTable, type KnownSession } from './session-table.ts'
import { SessionTurn, type SessionKey } from './session-turn.ts'
import { SessionWriter } from './session-writer.ts'
import { TurnMemory, type TurnMemoryDeps } from './turn-memory.ts'

/** Shorter bodies have no session: no provider caches a prompt of about 500 tokens. */
const leastBytes = 2_000
/** How long a request waits for the store. */
const lookupMs = 5
/** After so many lookups in a row that took longer or failed, nothing is read for a while. */
const lateToPause = 8
const pauseMs = 1_000
/** Lookups at once. Further requests are routed by what is in memory. */
const maxLookups = 64
/** Names whose digests are remembered, of all accounts: computing one takes longer than all other steps of a lookup. */
const maxNames = 2_000
/** Sessions remembered per checksum of a name: the same name in several profiles or, rarely, accounts. */
const maxOfName = 8
/** `User-Agent`s whose families are remembered: ten patterns are tried for each new one. */
const maxClients = 100
/** How long a session is remembered after its last turn, so that an expired cache can be explained. */
const rememberedMs = 24 * hourMs

/** Begins the digest of a session that the client named, or whose `prompt_cache_key` identifies it. */
const named = 'named:'

export interface CacheSessionsDeps {
  readonly digest: KeyedDigest
  readonly clock: Clock
  readonly log: EventLog
  /** Undefined if sessions are known to this process only. */
  readonly store?: CacheSessionStore | undefined
}

/** A request that may be a turn of a session. */
export interface SessionRequest {
  readonly accountId: string
  readonly profile: string
  readonly request: ModelRequest
  readonly conversation: Conversation
}

/** A session that has a name, with whose it is. */
interface NamedSession extends Pick<SessionRequest, 'accountId' | 'profile'> {
  readonly name: string
  readonly session: SessionKey
}

/** The sessions of all accounts: which backends hold the beginnings of their prompts in a cache (contract 45). */
export class CacheSessions implements AsyncDisposable {
  readonly #deps: CacheSessionsDeps
  readonly #table = new SessionTable()
  /** By the checksum of the name: with a text that is new in each request as its key, a map takes ten times as long. */
  readonly #names = new BoundedMap<number, NamedSession[]>(maxNames)
  readonly #clients = new BoundedMap<string, ClientFamily>(maxClients)
  readonly #writer: SessionWriter | undefined
  readonly #memoryDeps: TurnMemoryDeps
  #lookups = 0
  #lateInARow = 0
  #pausedUntilMs = 0

  constructor(deps: CacheSessionsDeps) {
    this.#deps = deps
    this.#writer = deps.store && new SessionWriter(deps.store, deps.clock, deps.log)
    this.#memoryDeps = {
      table: this.#table,
      clock: deps.clock,
      storeSoon: (accountId, session, known) => this.#storeSoon(accountId, session, known),
    }
  }

  /** The request as a turn of its session; undefined if its prompt is too short to be cached. */
  begin(of: SessionRequest): SessionTurn | undefined | Promise<SessionTurn> {
    const { accountId, request, conversation } = of
    if (request.bytes.length < leastBytes) return undefined
    const session = this.#sessionOf(of)
    const known = this.#table.get(accountId, session.digest)?.branches
    const isContinuing = conversation.turns.some(({ role }) => role === 'assistant')
    if (known === undefined) {
      const found = isContinuing ? this.#find(accountId, session.digest) : undefined
      if (found === undefined) return this.#turn(of, session, [])
      return found.then((branches) => this.#turn(of, session, branches ?? []))
    }
    const prompt = this.#read(of, known)
    const continued = findContinued(known, prompt)
    const isMissing = continued === undefined ? isContinuing : isBehind(continued, prompt)
    const found = isMissing ? this.#find(accountId, session.digest) : undefined
    if (found === undefined) return this.#turnOf(of, session, prompt, continued)
    return found.then((newer) =>
      this.#turnOf(of, session, prompt, newer === undefined ? continued : findContinued(newer, prompt)),
    )
  }

  /** Writes what waits to be written. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer?.flush()
  }

  #sessionOf({ accountId, profile, request, conversation }: SessionRequest): SessionKey {
    const { digest } = this.#deps
    const identity = sessionIdentity(request.statedSession, request.body, conversation)
    if (identity.kind === 'opening') {
      const opening = digest.of(JSON.stringify([accountId, profile, identity.texts]))
      return { isNamed: false, digest: opening, id: sessionIdPrefix + opening }
    }
    const { name } = identity
    const isNamed = identity.kind === 'named'
    const place = textChecksum(name)
    // Not one joined key: building it would cost every turn.
    const known = this.#names.get(place) ?? []
    for (const one of known)
      if (
        one.name === name &&
        one.accountId === accountId &&
        one.profile === profile &&
        one.session.isNamed === isNamed
      )
        return one.session
    const nameDigest = digest.of(JSON.stringify([accountId, name]))
    const session = { isNamed, digest: `${named}${nameDigest} ${profile}`, id: sessionIdPrefix + nameDigest }
    this.#names.set(place, [{ name, accountId, profile, session }, ...known.slice(0, maxOfName - 1)])
    return session
  }

  #clientOf(userAgent: string): ClientFamily {
    const known = this.#clients.get(userAgent)
    if (known !== undefined) return known
    const client = clientFamilyOf(userAgent)
    this.#clients.set(userAgent, client)
    return client
  }

  #read({ request, conversation }: SessionRequest, known: SessionBranches): ReadPrompt {
    const earlier = known.map(({ prompt }) => prompt)
    return digestPrompt(request, conversation, earlier)
  }

  #turn(of: SessionRequest, session: SessionKey, known: SessionBranches): SessionTurn {
    const prompt = this.#read(of, known)
    return this.#turnOf(of, session, prompt, findContinued(known, prompt))
  }

  #turnOf(of: SessionRequest, session: SessionKey, prompt: ReadPrompt, continued: Continued | undefined): SessionTurn {
    const { accountId, request, conversation } = of
    const client = this.#clientOf(request.userAgent ?? '')
    const wasSeen = continued !== undefined && isSeen(continued, prompt)
    const isExpected = session.isNamed || isAgent(client) || conversation.hints.sealedReasoning === true
    const { began, wentOn } = this.#table.openings(accountId, openingDigest(prompt))
    const begun = { accountId, session: session.digest, request, conversation, prompt, continued, isSeen: wasSeen }
    return new SessionTurn({
      session,
      prompt,
      continued,
      continuation: { isSeen: wasSeen, isExpected, began, wentOn },
      client,
      bytes: request.bytes,
      clock: this.#deps.clock,
      memory: new TurnMemory(this.#memoryDeps, begun),
    })
  }

  /** Writes a session soon, for other processes. */
  #storeSoon(accountId: string, session: string, known: KnownSession): void {
    const writer = this.#writer
    if (writer === undefined || writer.isWaiting(session)) return
    if (!session.startsWith(named) && !known.branches.some(isWorthStoring)) return
    writer.add(session, () => {
      const { branches, updatedMs } = this.#table.get(accountId, session) ?? known
      return { accountId, session, state: writeState(branches), updatedMs, expiresMs: updatedMs + rememberedMs }
    })
  }

  /** The session as another process stored it; undefined at once if it may not be read now. */
  #find(accountId: string, session: string): Promise<SessionBranches | undefined> | undefined {
    const { store, clock, log } = this.#deps
    if (store === undefined || this.#lookups >= maxLookups || clock.monotonicMs() < this.#pausedUntilMs)
      return undefined
    this.#lookups += 1
    let isLate = false
    const found = store
      .findCacheSession(accountId, session)
      .then((stored) => this.#readStored(accountId, session, stored, isLate))
      .catch((error: unknown) => {
        // Not counted twice.
        if (!isLate) this.#wasLate()
        isLate = true
        log({ event: 'store_failing', reason: errorName(error) })
        return undefined
      })
      .finally(() => (this.#lookups -= 1))
    return new Promise((resolve) => {
      const timer = clock.after(lookupMs, () => {
        isLate = true
        this.#wasLate()
        resolve(undefined)
      })
      void found.then((branches) => {
        if (!isLate) this.#lateInARow = 0
        timer.cancel()
        resolve(branches)
      })
    })
  }

  #wasLate(): void {
    this.#lateInARow += 1
    if (this.#lateInARow < lateToPause) return
    this.#lateInARow = 0
    this.#pausedUntilMs = this.#deps.clock.monotonicMs() + pauseMs
  }

  #readStored(
    accountId: string,
    session: string,
    stored: StoredCacheSession | undefined,
    isLate: boolean,
  ): SessionBranches | undefined {
    if (stored === undefined) return undefined
    const known = this.#table.get(accountId, session)
    if (known !== undefined && known.updatedMs >= stored.updatedMs) return known.branches
    const branches = readState(stored.state)
    // If the request did not wait, its own turn may be the newer one.
    if (branches === undefined || (isLate && known !== undefined)) return known?.branches
    this.#table.set(accountId, session, { branches, updatedMs: stored.updatedMs })
    return branches
  }
}

/** Whether other processes should know a session without a name: an agent's conversation, not a single question. */
function isWorthStoring({ prompt, turns }: Branch): boolean {
  return turns > 1 || prompt.count > 1 || prompt.tools !== 0
}

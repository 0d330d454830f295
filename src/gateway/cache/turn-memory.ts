import type { Conversation } from '../../domain/conversation.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { ModelRequest } from '../ports.ts'
import {
  addReport,
  findContinued,
  holderIn,
  isSecondTurn,
  withAnswer,
  type Branch,
  type BegunAnswer,
  type Continued,
  type ReportedRead,
  type SessionBranches,
} from './cached-prefix.ts'
import { changeBetween, digestPrompt, openingDigest, type ReadPrompt } from './prompt-digest.ts'
import type { KnownSession, SessionTable } from './session-table.ts'

export interface TurnMemoryDeps {
  readonly table: SessionTable
  readonly clock: Clock
  /** Has a session stored for other processes. */
  readonly storeSoon: (accountId: string, session: string, known: KnownSession) => void
}

/** A turn as it begins. */
export interface BegunTurn {
  readonly accountId: string
  /** The digest of its session. */
  readonly session: string
  readonly request: ModelRequest
  readonly conversation: Conversation
  readonly prompt: ReadPrompt
  readonly continued: Continued | undefined
  /** Whether an earlier turn was seen. */
  readonly isSeen: boolean
}

/** What one turn changes in what is remembered of its session. */
export class TurnMemory {
  readonly #deps: TurnMemoryDeps
  readonly #turn: BegunTurn
  /** The session when the turn began. */
  readonly #before: SessionBranches | undefined
  /** The session just before the turn was first answered. */
  #atAnswer: SessionBranches = []
  /** The session as this turn left it when it was last answered. */
  #after: SessionBranches | undefined

  constructor(deps: TurnMemoryDeps, turn: BegunTurn) {
    this.#deps = deps
    this.#turn = turn
    this.#before = this.#known()?.branches
  }

  /** A backend begins to answer. */
  answered(answer: BegunAnswer): void {
    const { table } = this.#deps
    const { accountId, prompt, continued, isSeen } = this.#turn
    const now = this.#known()?.branches
    const from = now === this.#before ? continued : findContinued(now ?? [], prompt)
    const isFirst = this.#after === undefined
    if (isFirst) this.#atAnswer = now ?? []
    this.#after = withAnswer(now ?? [], prompt, answer, from)
    this.#save(this.#after)
    if (!isFirst) return
    if (!isSeen) table.began(accountId, openingDigest(prompt))
    else if (from !== undefined && isSecondTurn(from, prompt)) table.wentOn(accountId, openingDigest(prompt))
  }

  /** Reads the whole prompt of an answered turn, and replaces what was remembered of it. */
  readAgain(answer: BegunAnswer): Pick<BegunTurn, 'prompt' | 'continued'> {
    const { request, conversation } = this.#turn
    const whole = digestPrompt(request, conversation, [])
    const corrected = withAnswer(this.#atAnswer, whole, answer, findContinued(this.#atAnswer, whole))
    const now = this.#known()?.branches
    const mine = this.#mine
    if (now === this.#after) this.#save(corrected)
    // Other conversations of the session went on meanwhile.
    else if (mine !== undefined && now?.includes(mine))
      this.#save(now.map((one) => (one === mine ? corrected[0]! : one)))
    return { prompt: whole, continued: findContinued(this.#before ?? [], whole) }
  }

  /** The holder of this domain in the conversation of `prompt` reported usage. */
  reported(prompt: ReadPrompt, domain: string, report: ReportedRead): void {
    const known = this.#known()
    const mine = this.#mine
    // Two conversations may have the same sample.
    const branch = known?.branches.find(
      (one) => one === mine || (one.prompt.raw === prompt.raw && changeBetween(one.prompt, prompt).at === 'end'),
    )
    const holder = branch && holderIn(branch, domain)
    if (known === undefined || holder === undefined) return
    addReport(holder, report)
    known.updatedMs = this.#nowMs()
    this.#store(known)
  }

  /** The turn's own conversation, as it was remembered. */
  get #mine(): Branch | undefined {
    return this.#after?.[0]
  }

  #known(): KnownSession | undefined {
    return this.#deps.table.get(this.#turn.accountId, this.#turn.session)
  }

  #save(branches: SessionBranches): void {
    const known = { branches, updatedMs: this.#nowMs() }
    this.#deps.table.set(this.#turn.accountId, this.#turn.session, known)
    this.#store(known)
  }

  #store(known: KnownSession): void {
    this.#deps.storeSoon(this.#turn.accountId, this.#turn.session, known)
  }

  #nowMs(): number {
    return Math.round(this.#deps.clock.nowMs())
  }
}

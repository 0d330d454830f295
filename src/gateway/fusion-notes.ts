import { BoundedMap } from '../domain/bounded-map.ts'
import type { Clock } from '../domain/clock.ts'
import type { Conversation, Json, Turn } from '../domain/conversation.ts'
import { conversationKey, type FusionMemo } from '../domain/fusion-memo.ts'
import { isObject } from '../domain/json.ts'
import { SealError, type Sealer } from '../domain/sealing.ts'
import { isArray } from '../formats/fields.ts'
import type { RelayRules } from '../formats/relay.ts'
import { sealFor, unsealFor } from '../formats/sealed.ts'
import { memoText } from './fusion/digest.ts'
import { isUsers } from './fusion/users-words.ts'
import type { ModelRequest } from './ports.ts'
import { rewriteRequest } from './rewrite-request.ts'

/** What we seal goes back to us alone: no backend's issuer has so few characters. */
const ownIssuer = 'fusion'
const purpose = 'fusion-memo'
const sealedMs = 24 * 3_600_000
/** A longer one is not ours. */
const maxSealedCharacters = 6_144
/** Of sealed values in one conversation, the newest: each is tried. */
const maxTried = 16
/** Conversations whose clients send nothing sealed back; of about 4 kB each. */
const maxRemembered = 2_000
const rememberedMs = 30 * 60_000

/** What is known of the turn that a request goes on from. */
export interface Recalled {
  /** The backend that wrote in this conversation last. */
  readonly pinned: string
  /** Of the deliberation of this very turn. */
  readonly memo?: FusionMemo
}

type Keeper = (memo: FusionMemo) => string | undefined

interface Remembered {
  readonly memo: FusionMemo
  readonly untilMs: number
}

/**
 * What deliberated turns leave for those that follow: sealed for its account in the reasoning that clients send back, and in
 * this process for those that do not (contract 15.17). What was changed, is another's or is too old is not there: never
 * an error.
 */
export class FusionNotes {
  readonly #sealer: Sealer
  readonly #clock: Clock
  readonly #byConversation = new BoundedMap<string, Remembered>(maxRemembered)

  constructor(sealer: Sealer, clock: Clock) {
    this.#sealer = sealer
    this.#clock = clock
  }

  /** What keeps whatever this turn leaves, and gives its sealed form where the caller takes one and will send it back. */
  keeperOf(accountId: string, { format }: ModelRequest, { turns, hints }: Conversation): Keeper {
    const takesSeal = format === 'openai-responses' && hints.sealedReasoning === true
    return (memo) => {
      const nowMs = this.#clock.nowMs()
      this.#byConversation.setLast(conversationKey(accountId, turns), {
        memo,
        untilMs: this.#clock.monotonicMs() + rememberedMs,
      })
      if (!takesSeal) return undefined
      return sealFor(ownIssuer, this.#sealer.seal([accountId, purpose], JSON.stringify({ ...memo, madeAtMs: nowMs })))
    }
  }

  /** What the turn that this conversation is in left, and else what one before it did. */
  recall(accountId: string, { turns }: Conversation): Recalled | undefined {
    const last = turns.findLastIndex(isUsers)
    const memo = this.#openNewest(accountId, turns.slice(last + 1)) ?? this.#find(accountId, turns.slice(0, last + 1))
    if (memo !== undefined) return { pinned: memo.writer, memo }
    const before = turns.slice(0, Math.max(0, last))
    const previous = before.findLastIndex(isUsers)
    const earlier = this.#openNewest(accountId, before) ?? this.#find(accountId, before.slice(0, previous + 1))
    return earlier === undefined ? undefined : { pinned: earlier.writer }
  }

  #find(accountId: string, turns: readonly Turn[]): FusionMemo | undefined {
    if (turns.length === 0 || this.#byConversation.size === 0) return undefined
    const found = this.#byConversation.get(conversationKey(accountId, turns))
    return found === undefined || found.untilMs < this.#clock.monotonicMs() ? undefined : found.memo
  }

  #openNewest(accountId: string, turns: readonly Turn[]): FusionMemo | undefined {
    const sealed = turns.flatMap((turn) => {
      if (turn.role !== 'assistant') return []
      return turn.parts.flatMap((part) => (part.type === 'reasoning' ? (ownSeal(part.sealed) ?? []) : []))
    })
    for (const text of sealed.toReversed().slice(0, maxTried)) {
      const memo = this.#open(accountId, text)
      if (memo !== undefined) return memo
    }
    return undefined
  }

  #open(accountId: string, sealed: string): FusionMemo | undefined {
    try {
      const opened = JSON.parse(this.#sealer.open([accountId, purpose], sealed)) as FusionMemo & { madeAtMs: number }
      const { madeAtMs, ...memo } = opened
      return madeAtMs + sealedMs < this.#clock.nowMs() ? undefined : memo
    } catch (error) {
      if (error instanceof SealError) return undefined
      throw error
    }
  }
}

/** The request with the notes behind the words of the user that they are about; undefined where there is no such place. */
export function withFusionNotes(
  request: ModelRequest,
  { words }: RelayRules,
  memo: FusionMemo | undefined,
): Promise<ModelRequest> | undefined {
  const text = memoText(memo)
  if (words === undefined || text === undefined) return undefined
  const list = request.body[words.member]
  if (!isArray(list)) return undefined
  for (let at = list.length - 1; at >= 0; at--) {
    const content = contentWith(list[at], { type: words.part, text })
    if (content === undefined) continue
    // What we sealed has been read, and is nothing to any model.
    const told = list.with(at, content).filter((entry) => !isOwn(entry))
    return rewriteRequest(request, { [words.member]: told })
  }
  return undefined
}

/** A user's message with a text behind its own; undefined where the entry is none. */
function contentWith(
  entry: Json | undefined,
  part: { readonly type: string; readonly text: string },
): Json | undefined {
  if (!isObject(entry) || entry['role'] !== 'user') return undefined
  const { content } = entry
  if (typeof content === 'string') return { ...entry, content: content + part.text }
  // Where results of tools are a user's too, those are not its words.
  if (!isArray(content) || !content.some((one) => isObject(one) && one['type'] === part.type)) return undefined
  return { ...entry, content: [...content, part] }
}

function isOwn(entry: Json): boolean {
  if (!isObject(entry)) return false
  const sealed = entry['encrypted_content']
  return typeof sealed === 'string' && ownSeal(sealed) !== undefined
}

function ownSeal(sealed: string | undefined): string | undefined {
  if (sealed === undefined || sealed.length > maxSealedCharacters) return undefined
  return unsealFor(ownIssuer, sealed)
}

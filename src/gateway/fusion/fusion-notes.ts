import type { Conversation, Turn } from '../../domain/conversation.ts'
import { conversationKey, type FusionMemo } from '../../domain/fusion-memo.ts'
import { type Json, isObject } from '../../domain/json.ts'
import { markWithIssuer, unmarkIssuer } from '../../formats/encrypted-reasoning.ts'
import { isArray } from '../../formats/fields.ts'
import type { RelayRules } from '../../formats/relay.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import type { Clock } from '../../runtime/clock.ts'
import { SealError, type Sealer } from '../../runtime/sealer.ts'
import type { ModelRequest } from '../ports.ts'
import { rewriteRequest } from '../rewrite-request.ts'
import { memoText } from './engine/digest.ts'
import { isUserTurn } from './engine/user-turns.ts'

/** Issuer of the values that we encrypt for ourselves. Shorter than any backend's issuer, so the two cannot collide. */
const ownIssuer = 'fusion'
const purpose = 'fusion-memo'
const sealedMs = 24 * 3_600_000
/** Longer values are not ours. */
const maxSealedCharacters = 6_144
/** Maximum number of encrypted values to try in one conversation, newest first. */
const maxTried = 16
/** Conversations cached for clients that do not send encrypted values back, about 4 kB each. */
const maxRemembered = 2_000
const rememberedMs = 30 * 60_000

/** What is known of the conversation that a request continues. */
export interface RecalledNotes {
  /** The backend that wrote last in this conversation. */
  readonly pinned: string
  /** From the deliberation on the current user message. */
  readonly memo?: FusionMemo
}

type NotesSaver = (memo: FusionMemo) => string | undefined

interface CachedNotes {
  readonly memo: FusionMemo
  readonly untilMs: number
}

/**
 * Stores what a deliberated request leaves for later ones: encrypted for its account in the reasoning that clients
 * send back, and in this process's memory for clients that do not (contract 15.17). A value that was modified, is
 * another account's, or has expired counts as absent, never as an error.
 */
export class FusionNotes {
  readonly #sealer: Sealer
  readonly #clock: Clock
  readonly #byConversation = new BoundedMap<string, CachedNotes>(maxRemembered)

  constructor(sealer: Sealer, clock: Clock) {
    this.#sealer = sealer
    this.#clock = clock
  }

  /** Saves what this request leaves; returns its encrypted form if the caller accepts one and will send it back. */
  saverFor(accountId: string, { turns, hints }: Conversation): NotesSaver {
    return (memo) => {
      const nowMs = this.#clock.nowMs()
      this.#byConversation.setLast(conversationKey(accountId, turns), {
        memo,
        untilMs: this.#clock.monotonicMs() + rememberedMs,
      })
      if (hints.sealedReasoning !== true) return undefined
      return markWithIssuer(
        ownIssuer,
        this.#sealer.seal([accountId, purpose], JSON.stringify({ ...memo, madeAtMs: nowMs })),
      )
    }
  }

  /** What the current user turn left, or else what an earlier turn of the conversation left. */
  recall(accountId: string, { turns }: Conversation): RecalledNotes | undefined {
    const last = turns.findLastIndex(isUserTurn)
    const memo = this.#openNewest(accountId, turns.slice(last + 1)) ?? this.#find(accountId, turns.slice(0, last + 1))
    if (memo !== undefined) return { pinned: memo.writer, memo }
    const before = turns.slice(0, Math.max(0, last))
    const previous = before.findLastIndex(isUserTurn)
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

/** Adds the notes after the user message that they belong to; undefined if there is no such message. */
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
    // Our own encrypted items have been read and mean nothing to a model.
    const entries = list.with(at, content).filter((entry) => !isOwn(entry))
    return rewriteRequest(request, { [words.member]: entries })
  }
  return undefined
}

/** A user message with a text appended; undefined if the entry is not one. */
function contentWith(
  entry: Json | undefined,
  part: { readonly type: string; readonly text: string },
): Json | undefined {
  if (!isObject(entry) || entry['role'] !== 'user') return undefined
  const { content } = entry
  if (typeof content === 'string') return { ...entry, content: content + part.text }
  // In formats where tool results are user messages, those are not the user's own words.
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
  return unmarkIssuer(ownIssuer, sealed)
}

import type { CacheReason, CacheVerdict } from '../../domain/cache-verdict.ts'
import type { ClientFamily } from '../../domain/client-family.ts'
import type { Usage } from '../../domain/conversation.ts'
import { hasCountedInput } from '../../domain/estimate-tokens.ts'
import type { Draft } from '../../formats/fields.ts'
import { heldTokens, holderIn, isAlive, type BegunAnswer, type Continued, type Holder } from './cached-prefix.ts'
import type { ReadPrompt } from './prompt-digest.ts'

/** A turn that reads this share of the previous prompt from the cache is a hit: providers cache in steps. */
const hitShare = 0.75
/** The shortest prompt that most providers cache, in tokens. */
const leastTokens = 1_024

export interface AnsweredTurn {
  /** The earlier turn; undefined if there is none. */
  readonly continued: Continued | undefined
  readonly prompt: ReadPrompt
  readonly answer: BegunAnswer
  readonly client: ClientFamily
}

/** Why the provider read what it read (contract 45.12). Pure; `usage` is that of the answer. */
export function verdictOf({ continued, prompt, answer, client }: AnsweredTurn, usage: Usage | undefined): CacheVerdict {
  const holder = continued && holderIn(continued.branch, answer.domain)
  const isHeld = holder !== undefined && isAlive(holder, answer.startedMs)
  const before = continued?.branch.holders[0]?.tokens ?? 0
  const expected = isHeld && holder.marked ? heldTokens(holder, continued!, prompt) : 0
  const read = usage !== undefined && hasCountedInput(usage) ? usage.cachedTokens : undefined
  const reason = reasonOf(continued, { holder, isHeld, before, read, isMarked: answer.marked })
  const item = reason === 'item' && continued?.change.at === 'item' ? continued.change.item : undefined
  // Members that are absent are left out, because the verdict is stored.
  const verdict: Draft<CacheVerdict> = { reason, before, expected, client }
  if (read !== undefined) verdict.read = read
  if (item !== undefined) verdict.item = item
  return verdict
}

/** Whether a verdict may depend on a change that the sample missed. */
export function needsWholePrompt({ reason }: CacheVerdict): boolean {
  return reason !== 'hit' && reason !== 'uncounted'
}

interface Facts {
  readonly holder: Holder | undefined
  readonly isHeld: boolean
  readonly before: number
  readonly read: number | undefined
  readonly isMarked: boolean
}

function reasonOf(continued: Continued | undefined, { holder, isHeld, before, read, isMarked }: Facts): CacheReason {
  if (continued === undefined) return 'first'
  if (read === undefined) return 'uncounted'
  if (before > 0 && read >= hitShare * before) return 'hit'
  if (before < leastTokens) return 'short'
  if (holder === undefined) return 'backend'
  if (!isHeld) return 'expired'
  const { at } = continued.change
  if (at !== 'end') return at
  if (!isMarked || !holder.marked) return 'unmarked'
  return holder.items < continued.branch.prompt.count ? 'backend' : 'unread'
}

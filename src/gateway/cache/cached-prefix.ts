import { tokensOfBytes } from '../../domain/estimate-tokens.ts'
import {
  changeBetween,
  digestOf,
  isSameConversation,
  type Change,
  type PromptDigest,
  type ReadPrompt,
} from './prompt-digest.ts'

/** Conversations of one session that are remembered: an agent and its helpers share a session. */
const maxBranches = 4
/** Backends per conversation whose caches are remembered: where it was, and where it failed over to. */
const maxHolders = 3
/** A backend that read nothing this often in a row, although it should have, does not hold the cache. */
const missesToForget = 2

/** A backend's cache that should hold the beginning of a conversation. Times are epoch milliseconds. */
export interface Holder {
  /** Backends with the same domain share one cache. */
  readonly domain: string
  readonly backend: string
  /** When its last request began: providers count from there. */
  readonly startedMs: number
  readonly lifetimeMs: number
  /** Of the prompt that it answered last. */
  readonly items: number
  readonly bytes: number
  /** An estimate until it reports usage: `addReport` changes this and the two figures below. */
  tokens: number
  /** How much of what it should have read it reported as read, from 0 to 1. */
  readShare: number
  /** How often in a row it read nothing. */
  misses: number
  /** Whether the prompt was marked for caching; true where no marks are needed. */
  readonly marked: boolean
}

/** One conversation of a session, with the caches that hold it; the one that was used last is first. */
export interface Branch {
  readonly prompt: PromptDigest
  readonly holders: readonly Holder[]
  readonly turns: number
}

/** What is remembered of a session: the conversation that was continued last is first. */
export type SessionBranches = readonly Branch[]

/** How a prompt continues an earlier one. */
export interface Continued {
  readonly branch: Branch
  readonly change: Change
}

/** The conversation that a prompt continues: the one with which it has most in common; undefined for a new one. */
export function findContinued(branches: SessionBranches, prompt: ReadPrompt): Continued | undefined {
  let found: Continued | undefined
  for (const branch of branches) {
    if (!isSameConversation(branch.prompt, prompt)) continue
    const change = changeBetween(branch.prompt, prompt)
    if (found === undefined || change.bytes > found.change.bytes) found = { branch, change }
  }
  return found
}

/** Whether more turns were answered since than the one that is remembered: another process knows more. */
export function isBehind({ branch, change }: Continued, prompt: ReadPrompt): boolean {
  return change.at === 'end' && prompt.answersAfter(branch.prompt.count) > 1
}

/** Whether a prompt continues an earlier conversation, and does not just begin with the same instructions. */
export function isSeen({ branch }: Continued, prompt: ReadPrompt): boolean {
  return prompt.answersAfter(0) > 0 && branch.prompt.items[0] === prompt.items[0]
}

/** Whether a prompt is the first one after that with which its conversation began. */
export function isSecondTurn({ branch, change }: Continued, prompt: ReadPrompt): boolean {
  return branch.turns === 1 && change.at === 'end' && prompt.answersAfter(branch.prompt.count) > 0
}

export function isAlive({ startedMs, lifetimeMs }: Holder, nowMs: number): boolean {
  return nowMs < startedMs + lifetimeMs
}

/** Tokens of the prompt that a cache should hold, whether or not it is still alive. */
export function heldTokens(holder: Holder, { change, branch }: Continued, prompt: ReadPrompt): number {
  // An item that this backend never saw cannot be cached there.
  const held = holder.items < branch.prompt.count ? Math.min(change.bytes, prompt.endOf(holder.items)) : change.bytes
  return Math.round(holder.tokens * Math.min(1, held / Math.max(1, holder.bytes)))
}

/** Tokens that staying with a backend saves from being computed again, by what it reported last (contract 45.4). */
export function warmTokens(holder: Holder, continued: Continued, prompt: ReadPrompt, nowMs: number): number {
  if (!isAlive(holder, nowMs) || holder.misses >= missesToForget) return 0
  return Math.round(heldTokens(holder, continued, prompt) * holder.readShare)
}

/** What is known when a backend begins to answer. */
export interface BegunAnswer {
  readonly domain: string
  readonly backend: string
  readonly startedMs: number
  readonly lifetimeMs: number
  readonly marked: boolean
}

/** The session after a backend began to answer: from now on it holds the prompt, which continues one of its branches (contract 45.2). */
export function withAnswer(
  branches: SessionBranches,
  prompt: ReadPrompt,
  answer: BegunAnswer,
  continued: Continued | undefined,
): SessionBranches {
  const before = continued?.branch
  // A prompt that is answered once more, such as by another backend after the first one broke off, is no further turn.
  const isRepeated = before?.prompt.count === prompt.count && continued?.change.at === 'end'
  const turns = (before?.turns ?? 0) + (isRepeated ? 0 : 1)
  const all: Branch[] = [{ prompt: digestOf(prompt), holders: holdersAfter(prompt, answer, continued), turns }]
  for (const other of branches) if (other !== before && all.length < maxBranches) all.push(other)
  return all
}

/** The caches of a conversation, first the one of the backend that began to answer. */
function holdersAfter(prompt: ReadPrompt, answer: BegunAnswer, continued: Continued | undefined): readonly Holder[] {
  const earlier = continued && holderIn(continued.branch, answer.domain)
  const bytes = prompt.ends[2]
  const holder: Holder = {
    domain: answer.domain,
    backend: answer.backend,
    startedMs: answer.startedMs,
    lifetimeMs: answer.lifetimeMs,
    marked: answer.marked,
    items: prompt.count,
    bytes,
    tokens: tokensOfBytes(bytes),
    readShare: earlier?.readShare ?? 1,
    misses: earlier?.misses ?? 0,
  }
  if (continued === undefined) return [holder]
  const all = [holder]
  for (const other of continued.branch.holders)
    if (other !== earlier && all.length < maxHolders) all.push(cut(other, continued, prompt))
  return all
}

/** The cache of a domain that holds a conversation. */
export function holderIn({ holders }: Branch, domain: string): Holder | undefined {
  for (const holder of holders) if (holder.domain === domain) return holder
  return undefined
}

/** A cache of an earlier prompt, after an item that it holds was changed. */
function cut(holder: Holder, continued: Continued, prompt: ReadPrompt): Holder {
  const { change } = continued
  if (change.at === 'end') return holder
  const tokens = heldTokens(holder, continued, prompt)
  const items = change.at === 'item' ? Math.min(holder.items, change.item - 1) : 0
  return { ...holder, items, tokens, bytes: Math.min(holder.bytes, change.bytes) }
}

/** What a backend reported of a complete answer. */
export interface ReportedRead {
  readonly inputTokens: number
  readonly readTokens: number
  /** Tokens that it was expected to read. */
  readonly expected: number
}

/** The provider reported usage. */
export function addReport(holder: Holder, { inputTokens, readTokens, expected }: ReportedRead): void {
  holder.tokens = inputTokens
  if (expected <= 0) return
  if (readTokens === 0) holder.misses += 1
  else {
    holder.readShare = Math.min(1, readTokens / expected)
    holder.misses = 0
  }
}

import type { CacheLifetime } from '../../domain/conversation.ts'

/** Providers answer 400 to a fifth mark. */
export const mostMarks = 4
/** How many blocks before a mark a provider searches for what it has stored. */
const lookbackBlocks = 20
/** Within the lookback, with room for blocks that a provider counts and we do not. */
const safeLookbackBlocks = 15
/** Storing a token costs 0.25 times its price more, and reading it saves 0.9 times its price. */
const leastShare = 0.25 / 0.9
const unknown: Continuation = { isSeen: false, isExpected: false, began: 0, wentOn: 0 }

/** One block of a prompt, in the order in which a provider caches it. */
export interface CacheBlock {
  /** Whether a mark may be added: never to thoughts, blank text, tools that load later, and blocks that have one. */
  readonly isMarkable: boolean
  /** The lifetime of the caller's own mark here. */
  readonly lifetime?: CacheLifetime
}

/** A written prompt, as far as marks depend on it. */
export interface CacheOutline {
  /** Tools, then instructions, then messages. */
  readonly blocks: readonly CacheBlock[]
  /** Where the instructions begin, and where the messages do. */
  readonly toolsEnd: number
  readonly systemEnd: number
  /**
   * Whether the model must call a tool. Extracting data works that way; an agent's first answer is free.
   */
  readonly forcesCall: boolean
  /** Where the newest turn of the model begins; undefined if it has not spoken. */
  readonly answerStart: number | undefined
  /**
   * If the user's newest words begin a new task: where the model's first answer to the words before them begins. Older
   * models no longer read what they thought since then, so their prompt is the same only up to here.
   */
  readonly earlierTask?: number | undefined
  /** Where the prompt ends for marks: before an unfinished answer that the model continues. */
  readonly end: number
  /** All marks of the caller, also those inside blocks and the automatic one. */
  readonly taken: number
}

/** What is known about whether a conversation goes on, so that its prompt is sent again. */
export interface Continuation {
  /** Whether an earlier turn of it was seen. */
  readonly isSeen: boolean
  /** Whether the client is a coding agent, names its session, or asks for encrypted reasoning to send it back. */
  readonly isExpected: boolean
  /** Of the account's latest conversations with these tools: how many began, and how many of them went on. */
  readonly began: number
  readonly wentOn: number
}

export interface MarkOptions {
  /** Undefined if nothing is known. */
  readonly continuation?: Continuation | undefined
}

interface PlannedMark {
  /** The block's position in the outline. */
  readonly at: number
  readonly lifetime: CacheLifetime
  readonly reason: 'instructions' | 'tools' | 'previous request' | 'request' | 'long turn' | 'earlier task'
}

/** The marks to add, in the order of the prompt, or why there are none. */
export interface MarkPlan {
  readonly marks: readonly PlannedMark[]
  readonly reason?: 'not read again' | 'no mark left' | 'nothing to mark'
}

/**
 * Decides which blocks of a prompt to mark, so that a provider that needs marks stores what later requests read
 * (contract 44.1-44.5). The caller's own marks stay, and all together are at most four.
 *
 * Marks pay off if more than 28 % of such requests are followed by another one.
 */
export function planMarks(outline: CacheOutline, { continuation }: MarkOptions = {}): MarkPlan {
  const { taken } = outline
  if (shareThatGoesOn(outline, continuation) <= leastShare) return { marks: [], reason: 'not read again' }
  if (taken >= mostMarks) return { marks: [], reason: 'no mark left' }
  const marks = chooseMarks(outline)
  if (marks.length === 0) return { marks, reason: 'nothing to mark' }
  return { marks: inOrder(marks) }
}

/** Sorts a few places where they are: the native sort allocates a kilobyte. */
export function inOrder<T extends { readonly at: number }>(places: T[]): readonly T[] {
  for (let from = 1; from < places.length; from += 1) {
    const one = places[from]!
    let at = from
    for (; at > 0 && places[at - 1]!.at > one.at; at -= 1) places[at] = places[at - 1]!
    places[at] = one
  }
  return places
}

/**
 * The expected share of such conversations that go on, from 0 to 1. A conversation that was seen does. Otherwise, the
 * account's own conversations with the same tools decide. Until there are any, a client is expected to go on if it has
 * tools and shows that it will, or has an answer already; but extracting data forces a call, and usually no request
 * follows.
 */
function shareThatGoesOn({ toolsEnd, forcesCall, answerStart }: CacheOutline, known = unknown): number {
  if (known.isSeen) return 1
  const isLikely = toolsEnd > 0 && (answerStart !== undefined || (known.isExpected && !forcesCall))
  return Math.min(1, ((isLikely ? 1 : 0) + known.wentOn) / (1 + known.began))
}

/** The blocks that are worth a mark, the most valuable first, as many as may be added. */
function chooseMarks(outline: CacheOutline): PlannedMark[] {
  const { blocks, toolsEnd, systemEnd, answerStart, earlierTask, end, taken } = outline
  const marks: PlannedMark[] = []
  /** `at`: -1 if there is no such block. */
  const add = (at: number, reason: PlannedMark['reason']): void => {
    if (at < 0 || marks.length + taken >= mostMarks || blocks[at]!.lifetime !== undefined) return
    if (!marks.some((mark) => mark.at === at)) marks.push({ at, reason, lifetime: lifetimeAt(at, outline) })
  }
  const tools = lastMarkable(outline, 0, toolsEnd)
  const tail = lastMarkable(outline, systemEnd, end)
  const previous = answerStart === undefined ? -1 : lastMarkable(outline, systemEnd, answerStart)
  const isLong = tail - Math.max(previous, systemEnd) > lookbackBlocks
  // A caller who marks messages decides where they end. A search from there may not reach the previous request.
  const isMarkedByCaller = hasMarks(outline, systemEnd, end)
  if (!isMarkedByCaller) add(tail, 'request')
  if (!hasMarks(outline, toolsEnd, systemEnd)) {
    const instructions = lastMarkable(outline, toolsEnd, systemEnd)
    if (instructions < 0) add(tools, 'tools')
    else add(instructions, 'instructions')
  }
  if (!isMarkedByCaller || tail - previous > safeLookbackBlocks) add(previous, 'previous request')
  if (isLong) {
    add(lastMarkable(outline, Math.max(previous, systemEnd), tail - safeLookbackBlocks), 'long turn')
    return marks
  }
  if (earlierTask !== undefined) add(lastMarkable(outline, systemEnd, earlierTask), 'earlier task')
  // Other agents of the client use the same tools with other instructions.
  if (taken === 0) add(tools, 'tools')
  return marks
}

function hasMarks({ blocks }: CacheOutline, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if (blocks[at]!.lifetime !== undefined) return true
  return false
}

/** The last block of a range that has a mark or may get one; -1 if there is none. */
function lastMarkable({ blocks }: CacheOutline, from: number, to: number): number {
  for (let at = to - 1; at >= from; at -= 1) {
    const { isMarkable, lifetime } = blocks[at]!
    if (isMarkable || lifetime !== undefined) return at
  }
  return -1
}

/** Providers answer 400 to an hour after five minutes, so a mark before one of the caller's for an hour lasts as long. */
function lifetimeAt(at: number, { blocks, taken }: CacheOutline): CacheLifetime {
  if (taken === 0) return '5m'
  for (let after = at + 1; after < blocks.length; after += 1) if (blocks[after]!.lifetime === '1h') return '1h'
  return '5m'
}

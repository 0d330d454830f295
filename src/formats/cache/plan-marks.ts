import type { CacheLifetime } from '../../domain/conversation.ts'

/** Providers answer 400 to a fifth mark. */
export const mostMarks = 4
/** How many blocks before a mark a provider searches for what it has stored. */
const lookbackBlocks = 20
/** Within the lookback, with room for blocks that a provider counts and we do not. */
const safeLookbackBlocks = 15

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
   * Whether the model must call a tool. Extracting data works that way, and usually no request follows; an agent's first
   * answer is free.
   */
  readonly forcesCall: boolean
  /** Where the newest turn of the model begins; undefined if it has not spoken. */
  readonly answerStart: number | undefined
  /** Where the prompt ends for marks: before an unfinished answer that the model continues. */
  readonly end: number
  /** All marks of the caller, also those inside blocks and the automatic one. */
  readonly taken: number
}

export interface MarkOptions {
  /** Whether the session was seen before, so that it probably goes on. */
  readonly isReread?: boolean | undefined
}

interface PlannedMark {
  /** The block's position in the outline. */
  readonly at: number
  readonly lifetime: CacheLifetime
  readonly reason: 'instructions' | 'tools' | 'previous request' | 'request' | 'long turn'
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
 * A mark costs a quarter more for each token that is stored and saves nine tenths for each that is read, so it pays off
 * if more than 28 % of the requests are followed by another one. That holds where tools are declared, unless the first
 * answer has to call one, and where a session has been seen; a single question is not marked.
 */
export function planMarks(outline: CacheOutline, options: MarkOptions = {}): MarkPlan {
  const { toolsEnd, taken, forcesCall, answerStart } = outline
  const isAgent = toolsEnd > 0 && !(forcesCall && answerStart === undefined)
  if (options.isReread !== true && !isAgent) return { marks: [], reason: 'not read again' }
  if (taken >= mostMarks) return { marks: [], reason: 'no mark left' }
  const chosen = new Map<number, PlannedMark['reason']>()
  for (const [at, reason] of candidates(outline)) {
    if (chosen.size + taken >= mostMarks) break
    if (at >= 0 && outline.blocks[at]!.lifetime === undefined && !chosen.has(at)) chosen.set(at, reason)
  }
  if (chosen.size === 0) return { marks: [], reason: 'nothing to mark' }
  const marks = Array.from(chosen, ([at, reason]) => ({ at, reason, lifetime: lifetimeAt(at, outline) }))
  return { marks: marks.toSorted((one, other) => one.at - other.at) }
}

/** Positions worth a mark, the most valuable first; -1 if there is none of a kind. */
function* candidates(outline: CacheOutline): Generator<readonly [at: number, reason: PlannedMark['reason']]> {
  const { toolsEnd, systemEnd, answerStart, end } = outline
  const tools = lastMarkable(outline, 0, toolsEnd)
  const instructions = lastMarkable(outline, toolsEnd, systemEnd)
  const tail = lastMarkable(outline, systemEnd, end)
  const previous = answerStart === undefined ? -1 : lastMarkable(outline, systemEnd, answerStart)
  const isLong = tail - Math.max(previous, systemEnd) > lookbackBlocks
  // A caller who marks messages decides where they end. A search from there may not reach the previous request.
  const isMarkedByCaller = hasMarks(outline, systemEnd, end)
  if (!isMarkedByCaller) yield [tail, 'request']
  if (!hasMarks(outline, toolsEnd, systemEnd))
    yield instructions >= 0 ? [instructions, 'instructions'] : [tools, 'tools']
  if (!isMarkedByCaller || tail - previous > safeLookbackBlocks) yield [previous, 'previous request']
  if (isLong) yield [lastMarkable(outline, Math.max(previous, systemEnd), tail - safeLookbackBlocks), 'long turn']
  // Other agents of the client use the same tools with other instructions.
  else if (outline.taken === 0) yield [tools, 'tools']
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

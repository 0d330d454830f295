import type { JsonObject } from '../../domain/json.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import { nameOf, type PromptBlock } from './prompt-blocks.ts'
import { bytesPerToken, chain, type CacheReport, type SimulatedCache } from './simulated-cache.ts'

export interface BlockCacheOptions {
  /** Tokens of one block. vLLM has 16. */
  readonly blockTokens: number
  /** Blocks in memory; the one used longest ago makes room for another. */
  readonly blocks: number
  /** The shortest prompt that is read from the cache. Default: one block. */
  readonly minimum?: number
  readonly read: (body: JsonObject) => readonly PromptBlock[]
}

/** An automatic cache in the memory of a server, as in vLLM: equal blocks of tokens after equal blocks are computed once. */
export class BlockCache implements SimulatedCache {
  readonly #options: BlockCacheOptions
  readonly #known: BoundedMap<string, true>

  constructor(options: BlockCacheOptions) {
    this.#options = options
    this.#known = new BoundedMap(options.blocks)
  }

  ask(body: JsonObject): CacheReport {
    const { blockTokens, minimum = blockTokens, read } = this.#options
    const text = Buffer.from(
      read(body)
        .map((block) => `${block.role} ${block.text}`)
        .join('\n'),
    )
    const total = Math.ceil(text.length / bytesPerToken)
    const blockBytes = blockTokens * bytesPerToken
    let digest = chain('', nameOf(body['model']))
    let found = 0
    let isRead = true
    for (let from = 0; from + blockBytes <= text.length; from += blockBytes) {
      digest = chain(digest, text.toString('latin1', from, from + blockBytes))
      isRead &&= this.#known.get(digest) === true
      if (isRead) found += blockTokens
      this.#known.setLast(digest, true)
    }
    const readTokens = found < minimum ? 0 : found
    return { newTokens: total - readTokens, readTokens, written5mTokens: 0, written1hTokens: 0 }
  }
}

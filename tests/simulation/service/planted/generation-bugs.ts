import type { PlantedBug } from './planted-bug.ts'

const generations = 'gateway/generations/generations.ts'
const run = 'gateway/generations/generation-run.ts'
const sink = 'gateway/generations/recording-sink.ts'
const feed = 'gateway/generations/answer-feed.ts'
const stored = 'gateway/generations/stored-feed.ts'
const store = 'storage/generations.ts'

/** Bugs of answers that are generated once for all requests with one key. */
export const generationBugs: readonly PlantedBug[] = [
  {
    name: 'ended-generation-runs-again',
    story: 'A key only protects while its first request runs: a later retry generates, and charges, a second answer.',
    patches: [
      {
        file: run,
        find: 'if (!hasContent && !this.#keyed.isBackground) await this.#remove()',
        replace: 'if (!this.#keyed.isBackground) await this.#remove()',
      },
    ],
  },
  {
    name: 'content-before-it-is-stored',
    story: 'A client receives what a crash then loses, and its retry gets another answer (contract 39.4).',
    patches: [
      {
        file: sink,
        find: `    if (!this.#isTooLarge) await this.#store(bytes, end)
    if (this.#failure !== undefined || bytes.length === 0) return
    if (this.#isHeld) this.#ready.push(bytes)
    else this.#options.feed.push(bytes)`,
        replace: `    if (bytes.length > 0 && this.#isHeld) this.#ready.push(bytes)
    else if (bytes.length > 0) this.#options.feed.push(bytes)
    if (!this.#isTooLarge) await this.#store(bytes, end)`,
      },
    ],
  },
  {
    name: 'lost-generation-ends-without-error',
    story: 'What a dead process left of a stream is replayed, and ends like a complete answer.',
    patches: [
      {
        file: stored,
        find: 'feed.hasBegunStream ? feed.brokenEnd(interrupted()) : Buffer.alloc(0)',
        replace: 'Buffer.alloc(0)',
      },
    ],
  },
  {
    name: 'lost-generation-runs-again-after-content',
    story: 'After a crash, a retry generates a second answer, although a client has the beginning of the first one.',
    patches: [
      {
        file: store,
        find: "state = 'running' and has_content = 0 and lease_until_ms <=",
        replace: "state = 'running' and lease_until_ms <=",
      },
    ],
  },
  {
    name: 'generation-ends-with-its-client',
    story: 'The answer is aborted as soon as its first client disconnects, so the retry finds a broken one.',
    patches: [
      {
        file: generations,
        find: 'this.#deps.clock.after(this.#deps.detachedMs, entry.stop)',
        replace: 'this.#deps.clock.after(0, entry.stop)',
      },
    ],
  },
  {
    name: 'replay-skips-the-first-chunk',
    story: 'A request that joins later starts at the second chunk.',
    patches: [
      {
        file: feed,
        find: '    this.#followers.add(follower)\n',
        replace: '    if (this.length > 1) follower.position = 1\n    this.#followers.add(follower)\n',
      },
    ],
  },
]

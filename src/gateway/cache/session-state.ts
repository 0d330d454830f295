import type { Branch, Holder, SessionBranches } from './cached-prefix.ts'
import type { PromptDigest } from './prompt-digest.ts'

/** Another version's states are ignored. */
const version = 4

type HolderCells = readonly [
  domain: string,
  backend: string,
  startedMs: number,
  lifetimeMs: number,
  items: number,
  bytes: number,
  tokens: number,
  readShare: number,
  misses: number,
  marked: 0 | 1,
]

type BranchCells = readonly [
  tools: number,
  system: number,
  settings: number,
  items: string,
  count: number,
  raw: number,
  rawLength: number,
  ends: PromptDigest['ends'],
  turns: number,
  holders: readonly HolderCells[],
]

/** A session as text for the database: arrays, because names would be most of it. */
export function writeState(branches: SessionBranches): string {
  return JSON.stringify([version, branches.map(branchCells)])
}

/** The session of a stored text; undefined if another version wrote it. */
export function readState(state: string): SessionBranches | undefined {
  const [written, branches] = JSON.parse(state) as [number, readonly BranchCells[]]
  return written === version ? branches.map(branchOf) : undefined
}

function branchCells({ prompt, holders, turns }: Branch): BranchCells {
  const { tools, system, settings, items, count, raw, rawLength, ends } = prompt
  const packed = Buffer.from(Uint32Array.from(items).buffer).toString('base64')
  return [tools, system, settings, packed, count, raw, rawLength, ends, turns, holders.map(holderCells)]
}

function holderCells(holder: Holder): HolderCells {
  const { domain, backend, startedMs, lifetimeMs, items, bytes, tokens, readShare, misses, marked } = holder
  const share = Math.round(readShare * 1000) / 1000
  const cells = [domain, backend, Math.round(startedMs), lifetimeMs, items, bytes, tokens, share, misses] as const
  return [...cells, marked ? 1 : 0]
}

function branchOf([tools, system, settings, packed, count, raw, rawLength, ends, turns, holders]: BranchCells): Branch {
  const bytes = Uint8Array.from(Buffer.from(packed, 'base64'))
  const items = [...new Uint32Array(bytes.buffer)]
  return {
    prompt: { tools, system, settings, items, count, raw, rawLength, ends },
    turns,
    holders: holders.map(holderOf),
  }
}

function holderOf(cells: HolderCells): Holder {
  const [domain, backend, startedMs, lifetimeMs, items, bytes, tokens, readShare, misses, marked] = cells
  return {
    domain,
    backend,
    startedMs,
    lifetimeMs,
    items,
    bytes,
    tokens,
    readShare,
    misses,
    marked: marked === 1,
  }
}

import type { LeftOutReason } from '../../domain/replay.ts'
import { resultOf, type RequestRecord } from '../../domain/requests.ts'
import type { PromptKind } from '../routing/prompt-kind.ts'

/** A record that can be replayed, and the kind of its request. */
export interface ReplayableRecord {
  readonly record: RequestRecord
  readonly kind: PromptKind
}

export interface SelectedRecords {
  readonly replayable: readonly ReplayableRecord[]
  /** Those and others whose calls show something of backends. */
  readonly observed: readonly ReplayableRecord[]
  readonly leftOut: Readonly<Partial<Record<LeftOutReason, number>>>
}

/**
 * Sorts out which records can be replayed; oldest first. A request that no backend was asked for has no kind: it gets
 * the one of the request before it, because leaving such requests out would hide outages.
 */
export function selectRecords(records: readonly RequestRecord[]): SelectedRecords {
  const replayable: ReplayableRecord[] = []
  const observed: ReplayableRecord[] = []
  const leftOut: Partial<Record<LeftOutReason, number>> = {}
  let lastKind: PromptKind | undefined
  for (const record of records) {
    const kind = kindOf(record) ?? (record.attempts.length === 0 ? lastKind : undefined)
    const reason = reasonAgainst(record, kind)
    if (reason !== undefined) leftOut[reason] = (leftOut[reason] ?? 0) + 1
    if (kind === undefined) continue
    lastKind = kind
    if (record.state === 'done' && record.fusions === undefined) observed.push({ record, kind })
    if (reason === undefined) replayable.push({ record, kind })
  }
  return { replayable, observed, leftOut }
}

function kindOf({ attempts }: RequestRecord): PromptKind | undefined {
  return attempts.find(({ kind }) => kind !== undefined)?.kind
}

function reasonAgainst(record: RequestRecord, kind: PromptKind | undefined): LeftOutReason | undefined {
  if (record.state !== 'done') return 'unfinished'
  if (record.fusions !== undefined) return 'fusion'
  const result = resultOf(record)
  if (result === 'rejected') return 'rejected'
  if (result === 'canceled') return 'canceled'
  if (record.attempts.some(({ ownRouting }) => ownRouting === true)) return 'own_routing'
  return kind === undefined ? 'without_kind' : undefined
}

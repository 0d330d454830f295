import { responseIdFor } from '../../../../src/domain/stored-responses.ts'
import { uuidOf } from '../../../../src/runtime/ids.ts'
import type { RequestRow } from '../../../../src/storage/schema/schema.ts'
import { type Exchange, firstOf } from '../client.ts'
import { callsOf, type Evidence, hasContent, idOf, type Invariant } from '../evidence.ts'

/** Requests with an `Idempotency-Key`, as often as they are sent. */
export const generationInvariants: readonly Invariant[] = [
  {
    id: 'I10',
    sentence: 'All requests with one key receive the same answer, as far as each of them receives it.',
    *check({ exchanges }) {
      for (const [first, ...others] of namedGroups(exchanges).map((group) => group.filter(hasContent))) {
        if (first === undefined) continue
        for (const other of others) {
          if (idOf(other) !== idOf(first)) yield `request ${other.number} is another one than request ${first.number}`
          const [shorter, longer] = [first.response.body, other.response.body].toSorted((a, b) => a.length - b.length)
          if (!longer!.startsWith(shorter!))
            yield `request ${other.number} got ${JSON.stringify(other.response.body)}, and request ${first.number} ${JSON.stringify(first.response.body)}`
        }
      }
    },
  },
  {
    id: 'I10b',
    sentence: 'Once a client has received content of an answer, no provider is called for its key again.',
    *check(evidence) {
      for (const group of namedGroups(evidence.exchanges)) {
        const firstMs = Math.min(...group.map(({ firstContentMs = Number.POSITIVE_INFINITY }) => firstContentMs))
        for (const { number, atMs } of callsOf(evidence, group[0]!))
          if (atMs > firstMs) yield `call ${number}, ${atMs - firstMs} ms after request ${group[0]!.number} had content`
      }
    },
  },
  {
    id: 'I10c',
    sentence: 'An answer is interrupted only if its process, its disk, or its provider failed.',
    *check(evidence) {
      for (const group of namedGroups(evidence.exchanges)) {
        const interrupted = group.filter(({ response }) => response.body.includes('"answer_interrupted"'))
        if (interrupted.length === 0 || isDisturbed(evidence, group)) continue
        const isHealthy = callsOf(evidence, group[0]!).at(-1)?.treatment.kind === 'answer'
        for (const { number } of interrupted) if (isHealthy) yield `request ${number}, although its provider answered`
      }
    },
  },
  {
    id: 'I10d',
    sentence:
      'Of all requests with one key, at most one is charged, besides those whose stored response could not be deleted.',
    *check(evidence) {
      const { world, exchanges, rows, responses } = evidence
      // The store failed when it should have deleted the response: it can be read, so it is charged (contract 6.20).
      const isLeft = ({ id, error_code }: RequestRow): boolean =>
        error_code !== null && responses.has(responseIdFor(id))
      const paidRows = [...rows.values()].filter((row) => row.charged > 0 && !isLeft(row))
      const charged = new Set(paidRows.map(({ id }) => uuidOf(id)))
      for (const group of namedGroups(exchanges)) {
        // Marks that the machine lost count as deliveries (contract 6.13), also of answers that are no longer stored.
        if (world.crashes.some(({ what, atMs }) => what === 'machine' && atMs >= group[0]!.startedMs)) continue
        const paid = new Set(
          callsOf(evidence, group[0]!).flatMap(({ uuid }) => (uuid !== undefined && charged.has(uuid) ? [uuid] : [])),
        )
        if (paid.size > 1) yield `request ${group[0]!.number}: ${paid.size} are charged`
      }
    },
  },
]

/** The exchanges of each named request, in the order in which they began. */
function namedGroups(exchanges: readonly Exchange[]): Exchange[][] {
  const named = exchanges.filter(({ plan }) => plan.isNamed)
  return [...Map.groupBy(named, (exchange) => firstOf(exchange)).values()]
}

/** Whether something but the provider may have ended the answer. */
function isDisturbed({ world }: Evidence, group: readonly Exchange[]): boolean {
  const fromMs = group[0]!.startedMs
  const untilMs = Math.max(...group.map(({ endedMs }) => endedMs ?? Number.POSITIVE_INFINITY))
  const isWithin = (atMs: number): boolean => atMs >= fromMs && atMs <= untilMs
  return (
    world.outages.some((outage) => outage.untilMs >= fromMs && outage.fromMs <= untilMs) ||
    [...world.crashes, ...world.restarts, ...world.pauses].some(({ atMs }) => isWithin(atMs)) ||
    world.changes.some(({ startedMs }) => isWithin(startedMs))
  )
}

import { type Kysely, sql } from 'kysely'
import type { Tables } from '../../src/storage/schema/schema.ts'
import type { Seen } from './clients.ts'

const minuteMs = 60_000
/** A revocation reaches every node within a second, and a node without the database trusts its keys for 5 s (contract 3.11). */
const revokedWithinMs = 6_000

export interface Limits {
  readonly perMinute: number
  readonly perMonth: number
}

/** When a key was revoked, epoch milliseconds: between these two. */
export interface Revocation {
  readonly startedMs: number
  readonly confirmedMs: number
}

export interface Facts {
  readonly seen: readonly Seen[]
  readonly limits: ReadonlyMap<string, Limits>
  readonly revocations: ReadonlyMap<string, Revocation>
}

/** Broken promises, each with at most a few examples. All lists are empty if every promise was kept. */
export interface Violations {
  /** More admissions within 60 s than the limit: by the database's records, and by what clients saw. */
  minutesInRecords: string[]
  minutesOfClients: string[]
  monthsOverLimit: string[]
  deliveredUncounted: string[]
  deliveredTwice: string[]
  /** Accounts whose month is not the sum of their records, or whose admissions are not numbered 1, 2, 3, … */
  unequalTotals: string[]
  wrongNumbers: string[]
  false401: string[]
  answeredAfterRevocation: string[]
}

interface Row {
  readonly id: string
  readonly accountId: string
  readonly admittedAtMs: number
  readonly number: number
  readonly state: string
  readonly charged: number
}

export interface Records {
  readonly rows: readonly Row[]
  readonly used: ReadonlyMap<string, number>
}

export async function readRecords(db: Kysely<Tables>): Promise<Records> {
  const { rows } = await sql<Row>`select id, account_id as "accountId", admitted_at_ms as "admittedAtMs", number, state,
    charged from requests order by account_id, number`.execute(db)
  const usage = await sql<{
    accountId: string
    used: number
  }>`select account_id as "accountId", sum(used)::bigint as used
    from usage group by account_id`.execute(db)
  return { rows, used: new Map(usage.rows.map(({ accountId, used }) => [accountId, used])) }
}

/** Charged requests whose answer no client received: at most one for each kill of a node (contract 6.13). */
export function undeliveredCharged({ rows }: Records, seen: readonly Seen[]): readonly Row[] {
  const delivered = new Set(seen.filter(({ isDelivered }) => isDelivered).map(({ id }) => id))
  return rows.filter(({ id, charged }) => charged > 0 && !delivered.has(id))
}

export function findViolations({ rows, used }: Records, { seen, limits, revocations }: Facts): Violations {
  const found: Violations = {
    minutesInRecords: [],
    minutesOfClients: [],
    monthsOverLimit: [],
    deliveredUncounted: [],
    deliveredTwice: [],
    unequalTotals: [],
    wrongNumbers: [],
    false401: [],
    answeredAfterRevocation: [],
  }
  const rowsByAccount = Map.groupBy(rows, ({ accountId }) => accountId)
  const seenByAccount = Map.groupBy(seen, ({ accountId }) => accountId)
  for (const [accountId, limit] of limits) {
    const own = rowsByAccount.get(accountId) ?? []
    const answers = (seenByAccount.get(accountId) ?? []).filter(({ status }) => status === 200)
    checkMinutes(found, accountId, { own, answers, limit })
    const charged = own.reduce((sum, row) => sum + row.charged, 0)
    const delivered = answers.filter(({ isDelivered }) => isDelivered).length
    if (Math.max(charged, delivered) > limit.perMonth)
      found.monthsOverLimit.push(`${accountId}: ${charged} charged, ${delivered} delivered, limit ${limit.perMonth}`)
    if (charged !== (used.get(accountId) ?? 0))
      found.unequalTotals.push(`${accountId}: ${charged} charged, ${used.get(accountId)} used`)
    const wrong = own.find(({ number }, index) => number !== index + 1)
    if (wrong !== undefined) found.wrongNumbers.push(`${accountId}: ${wrong.id} is number ${wrong.number}`)
  }
  checkDeliveries(found, rows, seen)
  checkKeys(found, seen, revocations)
  return found
}

function checkMinutes(
  found: Violations,
  accountId: string,
  { own, answers, limit }: { own: readonly Row[]; answers: readonly Seen[]; limit: Limits },
): void {
  const { perMinute } = limit
  for (const [index, { admittedAtMs, id }] of own.entries()) {
    const next = own[index + perMinute]
    if (next !== undefined && next.admittedAtMs - admittedAtMs < minuteMs)
      found.minutesInRecords.push(`${accountId}: ${id} to ${next.id} in ${next.admittedAtMs - admittedAtMs} ms`)
  }
  for (const { sentMs, id } of answers) {
    const within = answers.filter((other) => other.sentMs >= sentMs && other.gotMs <= sentMs + minuteMs)
    if (within.length > perMinute) found.minutesOfClients.push(`${accountId}: ${within.length} answers from ${id}`)
  }
}

function checkDeliveries(found: Violations, rows: readonly Row[], seen: readonly Seen[]): void {
  const charged = new Set(rows.filter((row) => row.charged > 0).map(({ id }) => id))
  const delivered = new Set<string>()
  for (const { isDelivered, id } of seen) {
    if (!isDelivered) continue
    if (delivered.has(id)) found.deliveredTwice.push(id)
    if (!charged.has(id)) found.deliveredUncounted.push(id)
    delivered.add(id)
  }
}

function checkKeys(found: Violations, seen: readonly Seen[], revocations: Facts['revocations']): void {
  for (const { keyId, status, code, sentMs, gotMs, id } of seen) {
    const revocation = revocations.get(keyId)
    if (status === 401 && !(revocation !== undefined && gotMs >= revocation.startedMs))
      found.false401.push(`${id} ${code} at ${new Date(gotMs).toISOString()}`)
    if (status === 200 && revocation !== undefined && sentMs > revocation.confirmedMs + revokedWithinMs)
      found.answeredAfterRevocation.push(`${id}: sent ${sentMs - revocation.confirmedMs} ms after it`)
  }
}

/**
 * Requests of single clients that were refused after they had waited as told. A client that got no definite answer
 * in between is not counted: its request may have taken the place that it waited for (contract 36.16).
 */
export function findRefusedAgain(seen: readonly Seen[]): {
  readonly waits: number
  readonly strict: string[]
  readonly afterUnknown: string[]
} {
  let waits = 0
  const strict: string[] = []
  const afterUnknown: string[] = []
  for (const [accountId, own] of Map.groupBy(seen, (each) => each.accountId)) {
    let hasWaited = false
    let isUnknown = false
    for (const { status, id, retryAfter } of own) {
      if (status === 429 && hasWaited)
        (isUnknown ? afterUnknown : strict).push(`${accountId}: ${id} again ${retryAfter} s`)
      if (status === 429 || status === 200) {
        hasWaited = status === 429
        if (hasWaited) waits += 1
        isUnknown = false
      } else {
        isUnknown = true
      }
    }
  }
  return { waits, strict, afterUnknown }
}

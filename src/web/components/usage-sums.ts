import type { UsageGroup } from '../../accounts/ports.ts'
import type { UsageSignals } from '../../domain/account-meter.ts'
import { type Picodollars, readDollars } from '../../domain/money.ts'
import { dayOf } from '../../domain/uptime.ts'
import { dayMs } from '../../runtime/durations.ts'
import type { DayBar } from './chart.ts'

/** No projection is made before this much of the month has passed. */
const leastElapsedMs = 12 * 3_600_000

/** Request counts by name, largest first; groups without a name are left out. */
export function countBy(
  groups: readonly UsageGroup[],
  nameOf: (group: UsageGroup) => string | null,
): readonly { readonly name: string; readonly count: number }[] {
  const counts = new Map<string, number>()
  for (const group of groups) {
    const name = nameOf(group)
    if (name !== null) counts.set(name, (counts.get(name) ?? 0) + group.requests)
  }
  return [...counts].map(([name, count]) => ({ name, count })).sort((a, b) => b.count - a.count)
}

/** A sum over all groups. */
export function sumOf<Group>(groups: readonly Group[], valueOf: (group: Group) => number): number {
  return groups.reduce((sum, group) => sum + valueOf(group), 0)
}

/** Requests with a cost. */
type CostedGroup = Pick<UsageGroup, 'requests' | 'cost'>

/** What requests cost, what caching saved, and how many have no known cost, which are not in the sums. */
export interface CostSum {
  readonly amount: Picodollars
  readonly saved: Picodollars
  readonly unknown: number
}

/** The exact cost of all groups. Undefined if no cost is known (contract 42.10). */
export function costOf(groups: readonly CostedGroup[]): CostSum | undefined {
  let [amount, saved, known, requests] = [0n, 0n, 0, 0]
  for (const group of groups) {
    amount += readDollars(group.cost.usd) ?? 0n
    saved += readDollars(group.cost.savedUsd) ?? 0n
    known += group.cost.priced
    requests += group.requests
  }
  return known === 0 ? undefined : { amount, saved, unknown: requests - known }
}

/** The columns of a group's cost in a download: dollars, what caching saved, and requests whose cost is unknown. */
export function costCells({ requests, cost }: CostedGroup): readonly (string | number | null)[] {
  const isUnknown = cost.priced === 0
  return [isUnknown ? null : cost.usd, isUnknown ? null : Number(cost.savedUsd), requests - cost.priced]
}

/** Request counts and costs by name, the most expensive first; groups without a name are left out. */
export function costBy<Group extends CostedGroup>(
  groups: readonly Group[],
  nameOf: (group: Group) => string | null,
): readonly { readonly name: string; readonly count: number; readonly cost: CostSum | undefined }[] {
  const named = Map.groupBy(
    groups.filter((group) => nameOf(group) !== null),
    (group) => nameOf(group)!,
  )
  return [...named]
    .map(([name, its]) => ({ name, count: sumOf(its, ({ requests }) => requests), cost: costOf(its) }))
    .sort((a, b) => byAmount(a.cost, b.cost) || b.count - a.count)
}

function byAmount(a: CostSum | undefined, b: CostSum | undefined): number {
  const [of, other] = [a?.amount ?? -1n, b?.amount ?? -1n]
  return of === other ? 0 : of < other ? 1 : -1
}

/** One bar for each day of `[fromMs, untilMs)`, including days without requests. */
export function barsByDay(groups: readonly UsageGroup[], fromMs: number, untilMs: number): readonly DayBar[] {
  const bars = new Map<string, { day: string; answered: number; failed: number }>()
  for (let startMs = fromMs; startMs < untilMs; startMs += dayMs) {
    const day = dayOf(startMs)
    bars.set(day, { day, answered: 0, failed: 0 })
  }
  for (const { day, errorCode, requests } of groups) {
    const bar = bars.get(day)
    if (bar !== undefined) bar[errorCode === null ? 'answered' : 'failed'] += requests
  }
  return [...bars.values()]
}

/** Projected usage at the current rate: units at the end of the month, and when the quota runs out, if before then. */
export interface Projection {
  readonly units: number
  readonly usedUpAtMs: number | undefined
}

/** Based on the enforced counter; undefined if it is too early in the month. */
export function projectMonth(usage: UsageSignals, startMs: number, nowMs: number): Projection | undefined {
  const elapsedMs = nowMs - startMs
  if (elapsedMs < leastElapsedMs || usage.quotaUsed === 0) return undefined
  const perMs = usage.quotaUsed / elapsedMs
  const endMs = usage.quotaReset * 1000
  const usedUpAtMs = nowMs + usage.quotaRemaining / perMs
  return { units: Math.round(perMs * (endMs - startMs)), usedUpAtMs: usedUpAtMs < endMs ? usedUpAtMs : undefined }
}

import { bookedOf } from '../../domain/budget-meter.ts'
import { type BudgetHold, isAmount } from '../../domain/budgets.ts'

/**
 * What a request without an end spent, by what its record says that it holds: all of it, because what it cost is unknown
 * (contract 46.5). A hold that is no amount counts as the whole budget, because no request can hold more; `isSound` is
 * false then (contract 46.19).
 */
export function bookedOfLost(
  text: string,
  limitOf: (budgetId: string) => number,
): { readonly booked: ReturnType<typeof bookedOf>; readonly isSound: boolean } {
  const found = readHolds(text)
  const holds = found.map((hold) => (isAmount(hold.amount) ? hold : { ...hold, amount: limitOf(hold.budgetId) }))
  const isSound = found.length > 0 && found.every(({ amount }) => isAmount(amount))
  return { booked: bookedOf(holds, undefined), isSound }
}

/** Those that name a bucket of a budget. A damaged text has none (contract 46.19). */
export function readHolds(text: string): readonly BudgetHold[] {
  try {
    const holds: unknown = JSON.parse(text)
    if (!Array.isArray(holds)) return []
    return (holds as readonly (Partial<BudgetHold> | null)[]).filter(
      (hold): hold is BudgetHold => typeof hold?.budgetId === 'string' && isAmount(hold.bucketMs),
    )
  } catch {
    return []
  }
}

import { type BudgetKind, budgetUnits, budgetWindows, isUsuallyRolling } from './budgets.ts'

/** A budget as a file names it (contract 46.12): `usd month`, `tokens day key ci`, `usd week calendar profile svc-router/frontier`. */
const labelShape = new RegExp(
  `^(${budgetUnits.join('|')}) (${budgetWindows.join('|')})(?: (rolling|calendar))?(?: (key|profile) (.{1,140}))?$`,
)

/** The kind that a name in a file stands for; `subject` is the name of a key, or a profile's id. Undefined if it is none. */
export function readBudgetLabel(label: string): BudgetKind | undefined {
  const [, unit, window, kind, scope = 'account', subject = ''] = labelShape.exec(label) ?? []
  if (unit === undefined || window === undefined) return undefined
  return {
    unit: unit as BudgetKind['unit'],
    window: window as BudgetKind['window'],
    rolling: kind === undefined ? isUsuallyRolling(window as BudgetKind['window']) : kind === 'rolling',
    scope: scope as BudgetKind['scope'],
    subject,
  }
}

/** The shortest name of a budget; `subject` as above. */
export function writeBudgetLabel({ unit, window, rolling, scope, subject }: BudgetKind): string {
  const kind = rolling === isUsuallyRolling(window) ? [] : [rolling ? 'rolling' : 'calendar']
  return [unit, window, ...kind, ...(scope === 'account' ? [] : [scope, subject])].join(' ')
}

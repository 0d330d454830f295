import { BudgetAlerts } from '../accounts/budget-alerts.ts'
import type { SendMail } from '../accounts/ports.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

interface StartBudgetAlertsDeps {
  readonly storage: Storage
  readonly sendMail: SendMail | undefined
  readonly onFailed: (error: unknown) => void
}

/** Starts to compare budgets with what is spent. Every process does, and whichever notices an alert first sends it. */
export function startBudgetAlerts(
  { clock, links }: Runtime,
  { storage, sendMail, onFailed }: StartBudgetAlertsDeps,
): AsyncDisposable {
  const { budgetsUrl } = links
  const alerts = new BudgetAlerts({ store: storage.store, clock, sendMail, budgetsUrl, onFailed })
  alerts.start()
  return { [Symbol.asyncDispose]: () => alerts.close() }
}

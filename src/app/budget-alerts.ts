import { BudgetAlerts } from '../accounts/budget-alerts.ts'
import { BudgetWebhook } from '../accounts/budget-webhook.ts'
import type { SendMail } from '../accounts/ports.ts'
import type { Providers } from './providers.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

interface StartBudgetAlertsDeps {
  readonly storage: Storage
  readonly sendMail: SendMail | undefined
  readonly postJson: Providers['postJson']
  readonly onFailed: (error: unknown) => void
}

/** Starts to compare budgets with what is spent. Every process does, and whichever notices an alert first sends it. */
export function startBudgetAlerts(
  runtime: Runtime,
  { storage, sendMail, postJson, onFailed }: StartBudgetAlertsDeps,
): AsyncDisposable {
  const { clock, links } = runtime
  const { budgetsUrl } = links
  const webhook = openWebhook(runtime, postJson)
  const alerts = new BudgetAlerts({ store: storage.store, clock, sendMail, webhook, budgetsUrl, onFailed })
  alerts.start()
  return { [Symbol.asyncDispose]: () => alerts.close() }
}

function openWebhook({ config, clock, log, links }: Runtime, postJson: Providers['postJson']) {
  if (config.budgetWebhook === undefined) return undefined
  const { url, secret } = config.budgetWebhook
  const post = (headers: readonly string[], body: string): Promise<void> => postJson({ url, headers, body })
  return new BudgetWebhook({ secret, budgetsUrl: links.budgetsUrl, clock, log, post })
}

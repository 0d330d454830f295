/** The pages that errors link to, one for each `*Url` signal (contract 4.4, 4.5). */
export interface Links {
  readonly accountUrl: string
  readonly accountSetupUrl: string
  readonly keysUrl: string
  readonly providersUrl: string
  readonly budgetsUrl: string
  readonly keyRecoveryUrl: string
  readonly managedAccessUrl: string
  readonly upgradeUrl: string
  readonly billingUrl: string
  readonly supportUrl: string
  readonly statusUrl: string
  readonly docsUrl: string
}

export type LinkName = keyof Links

/** The links for an application URL without a trailing slash. */
export function linksFor(appUrl: string): Links {
  return {
    accountUrl: `${appUrl}/account`,
    accountSetupUrl: `${appUrl}/account/setup`,
    keysUrl: `${appUrl}/account/keys`,
    providersUrl: `${appUrl}/account/upstreams`,
    budgetsUrl: `${appUrl}/account/budgets`,
    keyRecoveryUrl: `${appUrl}/account/recover`,
    managedAccessUrl: `${appUrl}/account/managed-access`,
    upgradeUrl: `${appUrl}/billing/upgrade`,
    billingUrl: `${appUrl}/billing`,
    supportUrl: `${appUrl}/support`,
    statusUrl: `${appUrl}/status`,
    docsUrl: `${appUrl}/docs`,
  }
}

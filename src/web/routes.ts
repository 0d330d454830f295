import { answerAsset } from './http/assets.ts'
import { PageError } from './http/page-error.ts'
import type { PageRoute } from './http/route.ts'
import { operatorRoutes } from './operator/routes.ts'
import { accountRoutes } from './pages/account.ts'
import { activityRoutes } from './pages/activity.ts'
import { apiRoutes } from './pages/api.ts'
import { billingRoutes } from './pages/billing.ts'
import { budgetRoutes } from './pages/budgets.ts'
import { codeRoutes } from './pages/code.ts'
import { connectRoutes } from './pages/connect.ts'
import { dataRoutes } from './pages/data.ts'
import { docsRoutes } from './pages/docs.ts'
import { emailRoutes } from './pages/emails.ts'
import { homeRoutes } from './pages/home.ts'
import { keyLimitRoutes } from './pages/key-limits.ts'
import { keyRoutes } from './pages/keys.ts'
import { leakedKeyRoutes } from './pages/leaked-key.ts'
import { managedAccessRoutes } from './pages/managed-access.ts'
import { modelRoutes } from './pages/models.ts'
import { outboxRoutes } from './pages/outbox.ts'
import { passkeyRoutes } from './pages/passkeys.ts'
import { playgroundRoutes } from './pages/playground.ts'
import { pricingRoutes } from './pages/pricing.ts'
import { requestRoutes } from './pages/request.ts'
import { signInRoutes } from './pages/sign-in.ts'
import { signOutRoutes } from './pages/sign-out.ts'
import { statusRoutes } from './pages/status.ts'
import { supportRoutes } from './pages/support.ts'
import { upgradeRoutes } from './pages/upgrade.ts'
import { upstreamRoutes } from './pages/upstreams.ts'
import { usageRoutes } from './pages/usage.ts'
import { webhookRoutes } from './pages/webhooks.ts'

const asset: PageRoute = {
  method: 'GET',
  path: '/assets/:name',
  access: 'public',
  handle({ path, headers }) {
    const answer = answerAsset(path, headers)
    if (answer === undefined) throw new PageError('not_found')
    return answer
  },
}

/** Every route and who can call it. Each page's file defines its own routes (contract 20). */
export const routes: readonly PageRoute[] = [
  ...homeRoutes,
  asset,
  ...outboxRoutes,
  ...signInRoutes,
  ...codeRoutes,
  ...passkeyRoutes,
  ...signOutRoutes,
  ...accountRoutes,
  ...keyRoutes,
  ...keyLimitRoutes,
  ...budgetRoutes,
  ...webhookRoutes,
  ...emailRoutes,
  ...upstreamRoutes,
  ...billingRoutes,
  ...upgradeRoutes,
  ...docsRoutes,
  ...apiRoutes,
  ...modelRoutes,
  ...pricingRoutes,
  ...statusRoutes,
  ...connectRoutes,
  ...supportRoutes,
  ...usageRoutes,
  ...activityRoutes,
  ...requestRoutes,
  ...playgroundRoutes,
  ...dataRoutes,
  ...managedAccessRoutes,
  ...leakedKeyRoutes,
  ...operatorRoutes,
]

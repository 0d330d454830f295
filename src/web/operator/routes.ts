import type { Route } from '../route.ts'
import { accountPageRoutes } from './account.ts'
import { accountsRoutes } from './accounts.ts'
import { auditRoutes } from './audit.ts'
import { confirmRoutes } from './confirm.ts'
import { operatorsRoutes } from './operators.ts'
import { overviewRoutes } from './overview.ts'
import { requestsRoutes } from './requests.ts'
import { operatorSignInRoutes } from './sign-in.ts'

/** Everything of the operator's console. Each page's file has its own rows. */
export const operatorRoutes: readonly Route[] = [
  ...operatorSignInRoutes,
  ...confirmRoutes,
  ...overviewRoutes,
  ...accountsRoutes,
  ...accountPageRoutes,
  ...requestsRoutes,
  ...operatorsRoutes,
  ...auditRoutes,
]

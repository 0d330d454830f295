import type { PageRoute } from '../http/route.ts'
import { accountPageRoutes } from './account.ts'
import { accountsRoutes } from './accounts.ts'
import { adminTokensRoutes } from './admin-tokens.ts'
import { auditRoutes } from './audit.ts'
import { backendRoutes } from './backend.ts'
import { backendsRoutes } from './backends.ts'
import { confirmRoutes } from './confirm.ts'
import { costsRoutes } from './costs.ts'
import { dryRunRoutes } from './dry-run.ts'
import { incidentsRoutes } from './incidents.ts'
import { managedRoutes } from './managed-access.ts'
import { nodesRoutes } from './nodes.ts'
import { operatorsRoutes } from './operators.ts'
import { overviewRoutes } from './overview.ts'
import { profilesRoutes } from './profiles.ts'
import { requestsRoutes } from './requests.ts'
import { operatorSignInRoutes } from './sign-in.ts'
import { ticketsRoutes } from './tickets.ts'
import { trafficRoutes } from './traffic.ts'

/** All console routes. Each page's file defines its own. */
export const operatorRoutes: readonly PageRoute[] = [
  ...operatorSignInRoutes,
  ...confirmRoutes,
  ...overviewRoutes,
  ...trafficRoutes,
  ...nodesRoutes,
  ...costsRoutes,
  ...accountsRoutes,
  ...accountPageRoutes,
  ...requestsRoutes,
  ...operatorsRoutes,
  ...adminTokensRoutes,
  ...auditRoutes,
  ...backendsRoutes,
  ...backendRoutes,
  ...profilesRoutes,
  ...dryRunRoutes,
  ...managedRoutes,
  ...incidentsRoutes,
  ...ticketsRoutes,
]

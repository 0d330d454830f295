import type { Route } from '../route.ts'
import { confirmRoutes } from './confirm.ts'
import { operatorsRoutes } from './operators.ts'
import { overviewRoutes } from './overview.ts'
import { operatorSignInRoutes } from './sign-in.ts'

/** Everything of the operator's console. Each page's file has its own rows. */
export const operatorRoutes: readonly Route[] = [
  ...operatorSignInRoutes,
  ...confirmRoutes,
  ...overviewRoutes,
  ...operatorsRoutes,
]

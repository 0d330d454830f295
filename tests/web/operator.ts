import type { UpgradesDeps } from '../../src/accounts/billing/billing-deps.ts'
import { createOperatorLink } from '../../src/accounts/identity/proofs.ts'
import { createOperator, type OperatorsDeps } from '../../src/accounts/operators/operators.ts'
import type { Operator, OperatorRole } from '../../src/domain/operators.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { Service } from '../service.ts'
import { Visitor } from './browser-less.ts'

/** Dependencies for changes of operators, as in the command line. */
export function operatorsDeps(service: Service): OperatorsDeps {
  return { ...service.accountsDeps, store: service.store.operators }
}

/** Dependencies for upgrade requests, as on the page of an account. */
export function upgradesDeps(service: Service): UpgradesDeps {
  const { accountsDeps, store, config } = service
  return {
    ...accountsDeps,
    clock: systemClock(),
    accounts: store,
    store: store.billing,
    plans: config.plans,
    defaultPlan: config.defaultPlan,
    graceMs: 0,
  }
}

/** All data that the console can change, without the audit log, to detect changes by comparison. */
export async function changeable({ store }: Service): Promise<string> {
  const accounts = await store.listAccounts(1_000)
  return JSON.stringify([
    accounts,
    await Promise.all(accounts.map(({ id }) => store.listKeys(id, 100))),
    await store.operators.listOperators(100),
    await store.billing.listUpgradeRequests({ limit: 100 }),
    await store.managedAccess(),
    await store.listManagedRequests({ limit: 100 }),
    await store.listBackendControls(),
    await store.listIncidents(0, 100),
    await store.listTickets(100),
    await store.listAdminTokens(100),
  ])
}

/** Creates the token of a link that signs an operator in once. */
export async function linkToken(service: Service, operatorId: string): Promise<string> {
  const link = await createOperatorLink(
    { ...service.accountsDeps, store: service.store },
    operatorId,
    service.config.appUrl,
  )
  return link.reveal().split('token=')[1]!
}

/** A new visitor of the console. */
export function signedOutOfConsole(service: Service): Visitor {
  return new Visitor(service.config.appUrl, '/operator')
}

/** An operator with this role, signed in by a link. */
export async function enterAs(
  service: Service,
  role: OperatorRole,
  email = `${role}@example.com`,
): Promise<{ readonly operator: Operator; readonly visitor: Visitor }> {
  const operator = await createOperator(operatorsDeps(service), email, role)
  const visitor = signedOutOfConsole(service)
  await visitor.post('/operator/sign-in/link', { token: await linkToken(service, operator.id) })
  return { operator, visitor }
}

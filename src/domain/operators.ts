import type { SignInMethod } from './identity.ts'

/** What operators may do, each role also everything before it: look; help accounts; decide about the service itself (contract 24.3). */
export const operatorRoles = ['viewer', 'support', 'admin'] as const
export type OperatorRole = (typeof operatorRoles)[number]

/** A person who operates the service: no account, and found nowhere among those. */
export interface Operator {
  /** `opr_…` */
  readonly id: string
  /** Where its codes go; of one operator that is not removed only. */
  readonly email: string
  readonly role: OperatorRole
  /** `removed` is for ever: the row stays, because the audit log names it. */
  readonly state: 'active' | 'removed'
  readonly createdAtMs: number
  readonly removedAtMs: number | null
}

/** A browser that is signed in to the console. Of its token only a digest is kept. */
export interface OperatorSession {
  /** `ops_…` */
  readonly id: string
  readonly operatorId: string
  readonly method: SignInMethod
  /** The browser in few words, such as `Firefox on Linux`. */
  readonly agent: string
  readonly createdAtMs: number
  readonly lastSeenAtMs: number
  /** The end that no use puts off. */
  readonly expiresAtMs: number
  /** When it was last proven who sits there: at signing in, or by a code since. */
  readonly confirmedAtMs: number
}

/** What an action of the console asks of whoever takes it. */
interface ActionRequirements {
  readonly role: OperatorRole
  /** Whether who sits there must have been proven lately (step-up): for all that does harm in the wrong hands. */
  readonly stepUp: boolean
}

/** Which role each action of the console needs, and whether a fresh proof. Routes take it from here (contract 24.3, 24.5). */
export const operatorActions = {
  see: { role: 'viewer', stepUp: false },
  changePlan: { role: 'support', stepUp: true },
  reviewUpgrade: { role: 'support', stepUp: true },
  suspendAccount: { role: 'support', stepUp: true },
  revokeKeys: { role: 'support', stepUp: true },
  answerTicket: { role: 'support', stepUp: false },
  tellIncident: { role: 'support', stepUp: false },
  reviewManagedAccess: { role: 'admin', stepUp: true },
  switchManagedAccess: { role: 'admin', stepUp: true },
  recordResale: { role: 'admin', stepUp: true },
  steerBackend: { role: 'admin', stepUp: true },
  changeOperators: { role: 'admin', stepUp: true },
} as const satisfies Readonly<Record<string, ActionRequirements>>

/** Whether a role includes another. */
export function hasRole(role: OperatorRole, needed: OperatorRole): boolean {
  return operatorRoles.indexOf(role) >= operatorRoles.indexOf(needed)
}

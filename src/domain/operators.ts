import type { SignInMethod } from './identity.ts'

/**
 * The roles of operators in ascending order: read; change accounts, and handle tickets and incidents; change the service
 * (contract 24.3). Each includes the previous ones.
 */
export const operatorRoles = ['viewer', 'support', 'admin'] as const
export type OperatorRole = (typeof operatorRoles)[number]

/** A person who operates the service. Operators are not accounts (contract 1.9, 24.1). */
export interface Operator {
  /** `opr_…` */
  readonly id: string
  /** The address that receives codes. Unique among operators who are not removed. */
  readonly email: string
  readonly role: OperatorRole
  /** `removed` is permanent. The row stays, because the audit log refers to it. */
  readonly state: 'active' | 'removed'
  readonly createdAtMs: number
  readonly removedAtMs: number | null
}

/** A browser that is signed in to the console. Only a digest of its token is stored. */
export interface OperatorSession {
  /** `ops_…` */
  readonly id: string
  readonly operatorId: string
  readonly method: SignInMethod
  /** The browser in a few words, such as `Firefox on Linux`. */
  readonly agent: string
  readonly createdAtMs: number
  readonly lastSeenAtMs: number
  /** The end, which activity does not postpone. */
  readonly expiresAtMs: number
  /** When the operator last proved their identity: at sign-in, or by a code since then. */
  readonly confirmedAtMs: number
}

/** What a console action requires from the operator. */
interface ActionRequirements {
  readonly role: OperatorRole
  /** Whether the operator must have proved their identity recently (step-up), because the action can do harm. */
  readonly stepUp: boolean
}

/**
 * The role, and whether a recent proof is required, for every console action. Routes read it from here (contract 24.3,
 * 24.5).
 */
export const operatorActions = {
  see: { role: 'viewer', stepUp: false },
  changePlan: { role: 'support', stepUp: true },
  reviewUpgrade: { role: 'support', stepUp: true },
  suspendAccount: { role: 'support', stepUp: true },
  changeBudgets: { role: 'support', stepUp: true },
  revokeKeys: { role: 'support', stepUp: true },
  answerTicket: { role: 'support', stepUp: false },
  tellIncident: { role: 'support', stepUp: false },
  reviewManagedAccess: { role: 'admin', stepUp: true },
  switchManagedAccess: { role: 'admin', stepUp: true },
  recordResale: { role: 'admin', stepUp: true },
  steerBackend: { role: 'admin', stepUp: true },
  changeOperators: { role: 'admin', stepUp: true },
  changeAdminTokens: { role: 'admin', stepUp: true },
} as const satisfies Readonly<Record<string, ActionRequirements>>

/** Whether a role includes another. */
export function hasRole(role: OperatorRole, needed: OperatorRole): boolean {
  return operatorRoles.indexOf(role) >= operatorRoles.indexOf(needed)
}

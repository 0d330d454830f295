import type { AdminScope, AdminToken } from '../../domain/admin-tokens.ts'
import { hasRole, type Operator } from '../../domain/operators.ts'
import { dayMs } from '../../runtime/durations.ts'
import { idMinter } from '../../runtime/ids.ts'
import { Secret } from '../../runtime/secret.ts'
import { mintToken, tokenDigest } from '../../runtime/tokens.ts'
import { AccountsError, checkName } from '../accounts-error.ts'
import { auditRecord, type AccountsDeps } from '../control-plane.ts'
import type { AdminTokenStore } from './admin-ports.ts'

/** What every token starts with: scanners of source code find it, and no API key has it (contract 38.12). */
export const adminTokenPrefix = 'sk_svc_admin_'
const tokenShape = /^sk_svc_admin_[A-Za-z0-9_-]{43}$/
const hintCharacters = 4
/** Tokens that work at the same time. */
export const maxAdminTokens = 100
export const maxListedTokens = 1_000
export const maxTokenDays = 365
export const defaultTokenDays = 90
/** How often a token's last use is stored at most. */
const touchEveryMs = 60_000

export type AdminTokensDeps = AccountsDeps<AdminTokenStore>

/** A new token. It can be shown only now. */
export interface MintedAdminToken {
  readonly secret: Secret
  readonly token: AdminToken
}

/**
 * Creates a token, which works for `days` days. @throws AccountsError `name_invalid`, `token_days_invalid`, `token_limit`,
 * `operator_only` if the actor is neither an operator nor the command line
 */
export async function createAdminToken(
  deps: AdminTokensDeps,
  { name, scope, days }: { readonly name: string; readonly scope: AdminScope; readonly days: number },
): Promise<MintedAdminToken> {
  const { actor } = deps
  if (actor.kind !== 'operator' && actor.kind !== 'cli') throw new AccountsError('operator_only')
  if (!Number.isSafeInteger(days) || days < 1 || days > maxTokenDays) throw new AccountsError('token_days_invalid')
  const nowMs = Math.floor(deps.clock.nowMs())
  const secret = new Secret(adminTokenPrefix + mintToken(deps.random).reveal())
  const token: AdminToken = {
    id: idMinter('adt_', () => nowMs, deps.random)(),
    name: checkName(name),
    hint: `${adminTokenPrefix}…${secret.reveal().slice(-hintCharacters)}`,
    scope,
    operatorId: actor.kind === 'operator' ? actor.operatorId : null,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + days * dayMs,
    lastUsedAtMs: null,
    revokedAtMs: null,
  }
  const record = auditRecord(deps, { type: 'admin_token.created', tokenId: token.id, scope })
  const isAdded = await deps.store.addAdminToken(token, digestOf(deps, secret.reveal()), maxAdminTokens, record)
  if (!isAdded) throw new AccountsError('token_limit')
  return { secret, token }
}

/** Revokes a token, effective with its next request. @throws AccountsError `token_unknown` */
export async function revokeAdminToken(deps: AdminTokensDeps, id: string): Promise<void> {
  const record = auditRecord(deps, { type: 'admin_token.revoked', tokenId: id })
  if (!(await deps.store.revokeAdminToken(id, record.atMs, record))) throw new AccountsError('token_unknown')
}

/** What authentication needs. */
export interface AdminAuthentication extends Omit<AccountsDeps<AdminTokenStore>, 'actor'> {
  findOperator(id: string): Promise<Operator | undefined>
}

/**
 * The token that a request carries; undefined if it is unknown, expired, or revoked, or if its operator was removed. The
 * scope of an operator's token is at most `read` while the operator is not an admin. The store is asked each time.
 */
export async function authenticateAdmin(deps: AdminAuthentication, given: string): Promise<AdminToken | undefined> {
  if (!tokenShape.test(given)) return undefined
  const token = await deps.store.findAdminToken(digestOf(deps, given))
  const nowMs = Math.floor(deps.clock.nowMs())
  if (token === undefined || stateOf(token, nowMs) !== 'active') return undefined
  const { operatorId } = token
  const operator = operatorId === null ? undefined : await deps.findOperator(operatorId)
  if (operatorId !== null && operator?.state !== 'active') return undefined
  if (nowMs - (token.lastUsedAtMs ?? 0) >= touchEveryMs) await deps.store.touchAdminToken(token.id, nowMs)
  return operator !== undefined && !hasRole(operator.role, 'admin') ? { ...token, scope: 'read' } : token
}

/** Whether a token works now. Its operator may have been removed. */
export function stateOf({ revokedAtMs, expiresAtMs }: AdminToken, nowMs: number): 'active' | 'expired' | 'revoked' {
  if (revokedAtMs !== null) return 'revoked'
  return nowMs < expiresAtMs ? 'active' : 'expired'
}

function digestOf({ pepper }: Pick<AccountsDeps, 'pepper'>, token: string): string {
  return tokenDigest('admin token', token, pepper)
}

import type { AdminToken } from '../../domain/admin-tokens.ts'
import type { AuditRecord } from '../../domain/audit.ts'

/** Tokens of the admin API. */
export interface AdminTokenStore {
  /** False if there are `maxTokens` that work. */
  addAdminToken(token: AdminToken, digest: string, maxTokens: number, record: AuditRecord): Promise<boolean>
  /** Newest first. */
  listAdminTokens(limit: number): Promise<readonly AdminToken[]>
  findAdminToken(digest: string): Promise<AdminToken | undefined>
  /** False if it is unknown or already revoked. */
  revokeAdminToken(id: string, atMs: number, record: AuditRecord): Promise<boolean>
  touchAdminToken(id: string, atMs: number): Promise<void>
}

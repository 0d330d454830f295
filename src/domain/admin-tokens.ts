/** What a token of the admin API may do: `read`, or also change (contract 38.12). */
export const adminScopes = ['read', 'write'] as const
export type AdminScope = (typeof adminScopes)[number]

/** A token of the admin API. Only a digest of it is stored. */
export interface AdminToken {
  /** `adt_…` */
  readonly id: string
  readonly name: string
  /** Its first and last characters. */
  readonly hint: string
  readonly scope: AdminScope
  /** The operator who created it, whose role bounds it; null if the command line did. */
  readonly operatorId: string | null
  readonly createdAtMs: number
  readonly expiresAtMs: number
  /** To the minute. */
  readonly lastUsedAtMs: number | null
  readonly revokedAtMs: number | null
}

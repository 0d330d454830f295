import type { FormatId } from './format-id.ts'
import type { KeyLimits } from './key-limits.ts'
import type { KeyState } from './keys.ts'

/** An account owns keys, a plan, quota, and provider credentials (contract 1.6). */
export interface Account {
  /** `acc_…` */
  readonly id: string
  /** The display name, 1–100 characters. */
  readonly name: string
  readonly planId: string
  readonly suspended: boolean
  readonly createdAtMs: number
}

/** A key as it is stored: only its digest, never the key itself (contract 3.4). */
export interface StoredKey {
  /** `key_…` */
  readonly id: string
  readonly accountId: string
  readonly name: string
  /** `sk_svc_Ab12…9fQk` */
  readonly hint: string
  readonly state: KeyState
  /** When a retiring key stops working; for any other key, when it expires. Null for never. */
  readonly endsAtMs: number | null
  readonly createdAtMs: number
  readonly revokedAtMs: number | null
  readonly limits: KeyLimits
}

/**
 * A provider that an account connected with its own credential (contract 21.1). Only the vault can decrypt
 * `sealedCredential`. Upstreams are tried in the order of `position`.
 */
export interface Upstream {
  /** `ups_…` */
  readonly id: string
  readonly accountId: string
  /** The preset: `openai`, `groq`, `custom`… */
  readonly provider: string
  readonly model: string
  /** Replaces the preset's base URL; required for `custom`. */
  readonly baseUrl: string | null
  readonly format: FormatId | null
  /** For `custom`: the header that carries the credential; `authorization` sends `Bearer`. */
  readonly authHeader: string | null
  readonly sealedCredential: string | null
  /** The last four characters of the credential, so that its owner recognizes it. */
  readonly credentialHint: string | null
  readonly position: number
  readonly createdAtMs: number
  /** Timeouts that replace the preset's; absent or null for the preset's own. */
  readonly timeouts?: UpstreamTimeouts | null | undefined
  /** Extra headers of every request, by lower-case name. None is a credential. */
  readonly headers?: Readonly<Record<string, string>> | null | undefined
}

/** Timeouts in milliseconds (contract 9). An absent one is the preset's. */
interface UpstreamTimeouts {
  readonly connectMs?: number
  readonly headersMs?: number
  readonly firstContentMs?: number
  readonly wholeAnswerMs?: number
  readonly idleMs?: number
  readonly totalMs?: number
}

import type { FormatId } from './format-id.ts'
import type { KeyLimits } from './key-limits.ts'
import type { KeyState } from './keys.ts'

/** An account: what keys, plans, quota and provider credentials belong to (contract 1.6). */
export interface Account {
  /** `acc_…` */
  readonly id: string
  /** A name for people, 1–100 characters. */
  readonly name: string
  readonly planId: string
  readonly suspended: boolean
  readonly createdAtMs: number
}

/** A key as it is kept: its digest and never itself (contract 3.4). */
export interface StoredKey {
  /** `key_…` */
  readonly id: string
  readonly accountId: string
  readonly name: string
  /** `sk_svc_Ab12…9fQk` */
  readonly hint: string
  readonly state: KeyState
  /** For a retiring key: when it stops working. For any other: when it expires, if ever. */
  readonly endsAtMs: number | null
  readonly createdAtMs: number
  readonly revokedAtMs: number | null
  readonly limits: KeyLimits
}

/**
 * A provider that an account connected with its own credential (contract 21.1). `credential` is sealed; only the
 * vault opens it. Upstreams are tried in the order of `position`.
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
  /** The last four characters of the credential, for recognising it. */
  readonly credentialHint: string | null
  readonly position: number
  readonly createdAtMs: number
  /** Limits that replace the preset's; absent or null where it has none of its own. */
  readonly timeouts?: UpstreamTimeouts | null | undefined
  /** Further headers of every request to it, by lower-case name. None of them is a credential. */
  readonly headers?: Readonly<Record<string, string>> | null | undefined
}

/** Milliseconds (contract 9). What is absent is as the preset has it. */
interface UpstreamTimeouts {
  readonly connectMs?: number
  readonly headersMs?: number
  readonly firstContentMs?: number
  readonly wholeAnswerMs?: number
  readonly idleMs?: number
  readonly totalMs?: number
}

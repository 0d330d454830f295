import type { AdminAuthentication } from '../../accounts/admin/admin-tokens.ts'
import type { AccountsDeps } from '../../accounts/control-plane.ts'
import type { DeclaredDeps } from '../../accounts/declared/apply.ts'
import type { ServedTarget } from '../../accounts/declared/check-target.ts'
import type { ChangeStore, DeclaredStore } from '../../accounts/declared/declared-ports.ts'
import type { AccountDataStore } from '../../accounts/ports.ts'
import type { BackendState } from '../../domain/backend-state.ts'
import type { Declaration, Settings } from '../../domain/declared.ts'
import type { RateLimiter } from '../http/rate-limiter.ts'

/** A checked file, and what resolves its settings with problems at their path. */
export interface ReadFile {
  readonly declaration: Declaration
  readonly serve: DeclaredDeps['serve']
}

/** What the admin API needs, besides what pages need. */
export interface AdminDeps {
  readonly tokens: AdminAuthentication
  /** The control plane; the actor is added for each call. */
  readonly control: Omit<AccountsDeps<ChangeStore & AccountDataStore>, 'actor'>
  readonly transactions: DeclaredStore
  /** The settings of the configuration file. */
  readonly configured: Settings
  /** The plans, backends, and profiles that are stored now: this process uses them within a second. */
  readServed(): Promise<ServedTarget>
  /** Reads a file in JSON. @throws DeclarationError */
  readFile(json: string): ReadFile
  /** The circuit breaker of a backend in this process. */
  condition(backendId: string): Pick<BackendState, 'state' | 'reason'>
  /** Limits failed authentications per address, and requests per token. */
  readonly limiters: { readonly failures: RateLimiter; readonly requests: RateLimiter }
  /** The OpenAPI document of the admin API. */
  readonly openApi: object
}

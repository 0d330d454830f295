import type { ControlPlane } from '../accounts/control-plane.ts'
import type { Upstream } from '../domain/accounts.ts'
import type { Secret } from '../domain/secret.ts'
import type { UpstreamTest } from '../domain/upstream.ts'

/** A provider that can be connected, as a page offers it. */
export interface OfferedProvider {
  readonly id: string
  readonly name: string
  readonly exampleModel: string
  readonly needsBaseUrl: boolean
  readonly credential: 'required' | 'optional' | 'none'
}

/** A field of the page that connects one. */
export type UpstreamField =
  | 'provider'
  | 'model'
  | 'credential'
  | 'base_url'
  | 'region'
  | 'format'
  | 'auth_header'
  | 'headers'
  | `timeout_${string}`

/** What was filled in. */
export interface UpstreamForm extends Readonly<
  Record<Exclude<UpstreamField, 'credential' | `timeout_${string}`>, string>
> {
  readonly credential: Secret | undefined
  /** By the names of the timeouts. */
  readonly timeouts: Readonly<Record<string, string>>
  /** Whether it is saved without a test. */
  readonly isUntested: boolean
}

/** Which field is wrong and why, in a sentence that repeats nothing of a credential. */
export interface UpstreamFault {
  readonly field: UpstreamField
  readonly sentence: string
}

/** Connects accounts to providers and tries them; app.ts gives it. */
export interface UpstreamDesk {
  readonly providers: readonly OfferedProvider[]
  readonly formats: readonly string[]
  readonly timeouts: readonly { readonly name: string; readonly label: string; readonly limits: string }[]
  /** Sends a test request first; where that fails nothing is saved. @throws AccountsError as `addUpstream` */
  connect(
    control: ControlPlane,
    accountId: string,
    form: UpstreamForm,
  ): Promise<UpstreamFault | { readonly id: string } | { readonly failed: UpstreamTest }>
  /** One small call, within a minute; nothing that the provider does makes it throw. */
  test(upstream: Upstream): Promise<UpstreamTest>
}

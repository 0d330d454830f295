import type { AccountsDeps } from '../../accounts/control-plane.ts'
import type { Upstream } from '../../domain/accounts.ts'
import type { UpstreamTest } from '../../domain/upstream.ts'
import type { Secret } from '../../runtime/secret.ts'

/** A provider that accounts can connect. */
export interface OfferedProvider {
  readonly id: string
  readonly name: string
  readonly exampleModel: string
  readonly needsBaseUrl: boolean
  readonly credential: 'required' | 'optional' | 'none'
}

/** A field of the form that connects a provider. */
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

/** The submitted form. */
export interface UpstreamForm extends Readonly<
  Record<Exclude<UpstreamField, 'credential' | `timeout_${string}`>, string>
> {
  readonly credential: Secret | undefined
  /** By timeout name. */
  readonly timeouts: Readonly<Record<string, string>>
  /** Whether to save it without a test. */
  readonly isUntested: boolean
}

/** The invalid field and a message that contains nothing of the credential. */
export interface UpstreamFault {
  readonly field: UpstreamField
  readonly sentence: string
}

/** Connects providers to accounts and tests them; composed in app.ts. */
export interface UpstreamConnector {
  readonly providers: readonly OfferedProvider[]
  readonly formats: readonly string[]
  readonly timeouts: readonly { readonly name: string; readonly label: string; readonly limits: string }[]
  /** Sends a test request first and saves nothing if it fails. @throws AccountsError as `addUpstream` */
  connect(
    control: AccountsDeps,
    accountId: string,
    form: UpstreamForm,
  ): Promise<UpstreamFault | { readonly id: string } | { readonly failed: UpstreamTest }>
  /** Sends one small request with a deadline of one minute. Never throws because of the provider. */
  test(upstream: Upstream): Promise<UpstreamTest>
}

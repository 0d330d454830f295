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
export type UpstreamField = 'provider' | 'model' | 'credential' | 'base_url' | 'region' | 'format' | 'auth_header'

/** What was filled in. */
export interface UpstreamForm extends Readonly<Record<Exclude<UpstreamField, 'credential'>, string>> {
  readonly credential: Secret | undefined
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
  /** @throws AccountsError as `addUpstream` */
  connect(
    control: ControlPlane,
    accountId: string,
    form: UpstreamForm,
  ): Promise<UpstreamFault | { readonly id: string }>
  /** One small call, within 20 s; nothing that the provider does makes it throw. */
  test(upstream: Upstream): Promise<UpstreamTest>
}

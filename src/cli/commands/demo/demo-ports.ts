import type { RequestRecord } from '../../../domain/requests.ts'
import type { Secret } from '../../../runtime/secret.ts'

/** The ways in which a simulated provider can fail. */
export type DemoFailure = 'refuses connections' | 'answers 503' | 'ends its stream before any content'

/** What a demo needs of its service. */
export interface DemoServiceOptions {
  readonly requestsPerMinute: number
  readonly requestsPerMonth: number
  /** The simulated providers that serve `svc-router/frontier` and `svc-router/fusion`, in order. */
  readonly providers: readonly string[]
  /** The text with which a provider answers a request; undefined for its usual one. */
  readonly say?: (provider: string, request: string) => string | undefined
}

/** A service that runs for one demo: on a free port, in a temporary folder, with simulated providers. */
export interface DemoService {
  /** `http://127.0.0.1:PORT/v1` */
  readonly baseUrl: string
  readonly key: Secret
  /** Makes a provider fail from now on; with undefined it answers again. */
  fail(provider: string, failure: DemoFailure | undefined): Promise<void>
  /** Moves the clock of the service forward. */
  skip(ms: number): Promise<void>
  /** The record of a request once it has ended; undefined if it was not admitted. */
  recordOf(requestId: string): Promise<RequestRecord | undefined>
  /** Stops everything and deletes the folder. */
  close(): Promise<void>
}

export type OpenDemoService = (options: DemoServiceOptions) => Promise<DemoService>

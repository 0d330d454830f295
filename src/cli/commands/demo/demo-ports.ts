import type { JsonObject } from '../../../domain/json.ts'
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
  /** Providers with a prompt cache, by name; all others have none. */
  readonly caching?: Readonly<Record<string, DemoCache>>
  /** The text with which a provider answers a request; undefined for its usual one. */
  readonly say?: (provider: string, request: string) => string | undefined
}

/** A provider of a demo that caches prompts as a real one does. */
export interface DemoCache {
  /** Whose rules and prices it has. */
  readonly like: 'anthropic' | 'openai'
  /** The name of a model of that provider. */
  readonly model: string
  /** Whether the service adds cache marks to its requests. */
  readonly addsMarks: boolean
}

/** The input of a request as its answer counts it. Tokens that were read or written are part of `input`. */
export interface DemoInput {
  readonly input: number
  readonly read: number
  readonly written: number
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
  /** The base URL of a provider, for requests that do not go through the service. */
  urlOf(provider: string): string
  /** The requests of a session of Codex that was recorded, with so many turns after the first. */
  recordedSession(turns: number): readonly JsonObject[]
  /** What a provider with a prompt cache charges for input, in US dollars at its published price. */
  inputUsd(provider: string, input: DemoInput): number
  /** Stops everything and deletes the folder. */
  close(): Promise<void>
}

export type OpenDemoService = (options: DemoServiceOptions) => Promise<DemoService>

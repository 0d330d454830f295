/** How the fake upstream answers until the next command. All answers are prepared in memory. */
export type UpstreamMode =
  | { readonly name: 'whole'; readonly bodyBytes: number }
  /** All events of a stream in one write. */
  | { readonly name: 'burst'; readonly events: number }
  /** One event, then a pause, for each stream by itself. */
  | { readonly name: 'paced'; readonly events: number; readonly everyMs: number }
  /** Two events, then one per second until `finish`. */
  | { readonly name: 'hold' }

export type UpstreamCommand =
  | { readonly do: 'mode'; readonly mode: UpstreamMode }
  | { readonly do: 'count' }
  | { readonly do: 'finish' }

/** The upstream's reply to each command. */
export interface UpstreamReport {
  readonly answered: number
  readonly openStreams: number
}

/** The first message of a process that listens. */
export interface Listening {
  readonly port: number
}

/** The target, and the bytes of complete HTTP/1.1 requests, which are sent in turns. At least one. */
export interface Target {
  readonly port: number
  readonly requests: readonly string[]
}

export type LoadCommand =
  /** Each connection sends its next request after the last answer, until the time or the count is used up. */
  | {
      readonly do: 'closed'
      readonly target: Target
      /** Further targets. The connections are divided evenly among all. */
      readonly besides?: readonly Target[]
      readonly connections: number
      readonly maxRequests: number
      readonly durationMs: number
    }
  /** The same in several runs of clients that stay connected and continue their sessions; `clients` is their name. */
  | { readonly do: 'keep'; readonly clients: string; readonly target: Target; readonly connections: number }
  | { readonly do: 'run-kept'; readonly clients: string; readonly durationMs: number }
  | { readonly do: 'drop-kept' }
  /** Requests are sent at a fixed rate, whether or not earlier ones were answered. */
  | { readonly do: 'open'; readonly target: Target; readonly perSecond: number; readonly durationMs: number }
  /** Opens connections that send nothing. */
  | { readonly do: 'hold-idle'; readonly port: number; readonly count: number }
  | { readonly do: 'drop-idle' }

/** The results of a run of the load generator. `failures` counts each kind of failure. */
export interface LoadReport {
  readonly answers: number
  readonly elapsedMs: number
  /** The size of the shortest body as received, including chunk framing. */
  readonly shortestBytes: number
  readonly failures: Readonly<Record<string, number>>
  /** Microseconds from sending to the last byte, for each answer of an open run; empty otherwise. */
  readonly latenciesUs: readonly number[]
  readonly idleOpen: number
}

/** What the fake upstream answers until it is told otherwise. Every answer is ready in memory before the first request. */
export type UpstreamMode =
  | { readonly name: 'whole'; readonly bodyBytes: number }
  /** All events of a stream in one write. */
  | { readonly name: 'burst'; readonly events: number }
  /** One event, then a pause, for each stream by itself. */
  | { readonly name: 'paced'; readonly events: number; readonly everyMs: number }
  /** Two events, then one each second until `finish` is said. */
  | { readonly name: 'hold' }

export type UpstreamCommand =
  | { readonly do: 'mode'; readonly mode: UpstreamMode }
  | { readonly do: 'count' }
  | { readonly do: 'finish' }

/** The upstream's reply to every command. */
export interface UpstreamReport {
  readonly answered: number
  readonly openStreams: number
}

/** The first message of a process that listens. */
export interface Listening {
  readonly port: number
}

/** Where to send, and the bytes of one whole HTTP/1.1 request. */
export interface Target {
  readonly port: number
  readonly request: string
}

export type LoadCommand =
  /** Each connection sends its next request as soon as the last was answered, until the time or the count is used up. */
  | {
      readonly do: 'closed'
      readonly target: Target
      readonly connections: number
      readonly maxRequests: number
      readonly durationMs: number
    }
  /** Requests leave at a fixed rate, whether or not earlier ones were answered. */
  | { readonly do: 'open'; readonly target: Target; readonly perSecond: number; readonly durationMs: number }
  /** Opens connections that send nothing. */
  | { readonly do: 'hold-idle'; readonly port: number; readonly count: number }
  | { readonly do: 'drop-idle' }

/** What a run of the load generator saw. `failures` names each kind of trouble with its count. */
export interface LoadReport {
  readonly answers: number
  readonly elapsedMs: number
  /** The body of the shortest answer as it came over the wire, chunk framing included. */
  readonly shortestBytes: number
  readonly failures: Readonly<Record<string, number>>
  /** Microseconds from sending to the last byte, one for each answer of an open run; empty otherwise. */
  readonly latenciesUs: readonly number[]
  readonly idleOpen: number
}

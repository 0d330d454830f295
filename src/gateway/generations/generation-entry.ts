import type { JsonObject } from '../../domain/json.ts'
import type { Timer } from '../../runtime/clock.ts'
import type { AnswerSink, HeldBytes, ModelRequest, Principal } from '../ports.ts'
import { AnswerFeed, type FeedOptions } from './answer-feed.ts'
import type { StoredGeneration } from './generation-store.ts'

/** A request that names itself, so that its retries get the same answer. */
export interface KeyedRequest {
  readonly principal: Principal
  readonly request: ModelRequest
  readonly keyDigest: string
  readonly bodyDigest: string
  /** The client, for the answer of the request with this ID. */
  readonly sinkFor: (requestId: string) => AnswerSink
  /** Calls back once the client has received everything or has disconnected; at once if it already has. */
  readonly onClosed: (run: () => void) => void
  /** Counts the memory of a generation. @throws ServiceError `server_busy` */
  readonly hold: () => HeldBytes & Disposable
  /** The ID of the last event that the client has. */
  readonly after: number | undefined
  /** Whether it runs to its end without any client (contract 39.14). */
  readonly isBackground: boolean
  /** Checks the request and writes its whole answer, if it is a compaction. */
  readonly answer?: ((request: ModelRequest, sink: AnswerSink) => Promise<void>) | undefined
}

/** A client that continues the stream of a response that it knows by ID. */
export type Resumption = Pick<KeyedRequest, 'principal' | 'sinkFor' | 'onClosed' | 'hold' | 'after'>

/** One generation that this process runs or reads. */
export interface Entry {
  readonly name: string
  readonly feed: AnswerFeed
  /** Resolves when it is known who runs it; rejects if it could not be claimed. */
  ready: Promise<void>
  requestId: string
  bodyDigest: string
  /** Stops running or reading. */
  stop: () => void
  /** The request that runs it, if that is in this process. */
  runner: KeyedRequest | undefined
  /** Clients that wait for the answer or receive it. */
  clients: number
  /** Cancels it once no client has come back for a while. */
  detached: Timer | undefined
  /** Once nothing is added: releases the memory of the answer, which the last client does. */
  release: (() => void) | undefined
  isCanceled: boolean
  /** The response object of a background response, once its request is admitted. */
  readonly started: PromiseWithResolvers<JsonObject>
}

/** An entry that nothing fills yet. */
export function newEntry(
  name: string,
  { requestId, bodyDigest, stream }: Pick<StoredGeneration, 'requestId' | 'bodyDigest' | 'stream'>,
  feed: Omit<FeedOptions, 'isStream'>,
): Entry {
  const started = Promise.withResolvers<JsonObject>()
  // Only a request that starts it in the background awaits it.
  started.promise.catch(() => {})
  return {
    name,
    feed: new AnswerFeed({ ...feed, isStream: stream }),
    ready: Promise.resolve(),
    requestId,
    bodyDigest,
    stop: () => {},
    runner: undefined,
    clients: 0,
    detached: undefined,
    release: undefined,
    isCanceled: false,
    started,
  }
}

/** Names the generation of a key. */
export function nameOf({ accountId, keyDigest }: Pick<StoredGeneration, 'accountId' | 'keyDigest'>): string {
  return `${accountId} ${keyDigest}`
}

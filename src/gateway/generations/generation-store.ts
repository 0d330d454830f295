import type { ClientFormatId } from '../../domain/format-id.ts'

/**
 * `running`; `finished`: its answer is complete; `interrupted`: it ended early, and what it delivered ends with an error;
 * `canceled`; `too_large`: it was larger than what is stored for retries.
 */
export type GenerationState = 'running' | 'finished' | 'interrupted' | 'canceled' | 'too_large'

/** How a generation ended. */
export type GenerationEnd = Exclude<GenerationState, 'running'>

/** A generation to start. Its request ID also proves ownership: whatever writes to a generation names it. */
export interface NewGeneration {
  readonly accountId: string
  readonly keyDigest: string
  readonly requestId: string
  readonly bodyDigest: string
  readonly format: ClientFormatId
  readonly stream: boolean
  readonly isBackground: boolean
  /** Epoch milliseconds. */
  readonly createdAtMs: number
  /** When it is no longer stored, epoch milliseconds. */
  readonly expiresAtMs: number
}

/** One generation: a request that answers its retries, too (contract 39.1). */
export interface StoredGeneration extends Omit<NewGeneration, 'expiresAtMs'> {
  readonly state: GenerationState
  /** Whether content is stored, so that the request counts as delivered. */
  readonly hasContent: boolean
  readonly isCancelRequested: boolean
  /** How the answer was produced, as JSON; undefined until it begins. */
  readonly head: string | undefined
  /** The response object of a background response, encrypted. */
  readonly sealedResponse: string | undefined
  /** How many chunks are stored. */
  readonly chunks: number
  /** Of the stored chunks, before encryption. */
  readonly bytes: number
  /** Until the process that runs it counts as dead; not positive if it does. */
  readonly leaseLeftMs: number
}

/** The next chunk of an answer: whole events of a stream, or a part of a whole answer, encrypted. */
export interface GenerationChunk {
  readonly accountId: string
  readonly requestId: string
  /** Chunks are numbered from 0. */
  readonly number: number
  /** Absent if only the state changes. */
  readonly sealed?: string | undefined
  /** Of the chunk, before encryption. */
  readonly bytes: number
  readonly head?: string | undefined
  /** Whether this or an earlier chunk has content. */
  readonly hasContent: boolean
  /** Set with the last chunk. */
  readonly end?: GenerationEnd | undefined
  /** Only if the process that ran it counts as dead. */
  readonly onlyIfAbandoned?: true
}

/** What is new of a generation. */
interface GenerationNews {
  readonly generation: StoredGeneration
  readonly chunks: readonly { readonly number: number; readonly sealed: string }[]
}

/**
 * Stores generations (contract 39.1). Everything is scoped to one account. A rejected promise means that the store is
 * unavailable.
 */
export interface GenerationStore {
  /**
   * Decides who runs a generation. Undefined if it is the caller: there was none under this key, or its process died
   * before any content was stored and before a client knew its response, which also cancels that request's charge.
   * Otherwise the one that exists. Deletes the
   * oldest ended ones of the account if there are too many.
   */
  claim(generation: NewGeneration): Promise<StoredGeneration | undefined>
  /** Whether a generation is stored under this key that runs or does not expire by `timeMs`. */
  has(accountId: string, keyDigest: string, timeMs: number): Promise<boolean>
  findByRequest(accountId: string, requestId: string): Promise<StoredGeneration | undefined>
  /** Appends a chunk and prolongs the lease; false if the generation has ended, was deleted, or has another owner. */
  append(chunk: GenerationChunk): Promise<boolean>
  /** Stores the response object of a background response, encrypted. */
  setResponse(requestId: string, sealedResponse: string): Promise<void>
  /** Prolongs the leases of running generations; returns those that should be canceled. */
  renew(requestIds: readonly string[]): Promise<readonly string[]>
  /** The generation, and its chunks from number `from` on; undefined if it was deleted. */
  read(accountId: string, requestId: string, from: number): Promise<GenerationNews | undefined>
  requestCancel(accountId: string, requestId: string): Promise<void>
  /** Nothing is added to a generation that grew too large to be stored. */
  endLease(requestId: string): Promise<void>
  /** Deletes the chunks of a generation that grew too large to be stored. */
  dropChunks(requestId: string): Promise<void>
  /** Deletes a generation, so that a retry starts again. */
  remove(accountId: string, requestId: string): Promise<void>
}

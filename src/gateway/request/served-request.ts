import type { Conversation } from '../../domain/conversation.ts'
import type { Profile } from '../../domain/profiles.ts'
import type { RequestRouting } from '../../domain/routing-policy.ts'
import type { SessionTurn } from '../cache/session-turn.ts'
import type { Backend, ModelRequest } from '../ports.ts'
import type { ResponsePersister } from '../responses/response-persister.ts'

/** A request that was parsed and allowed, with all its references resolved. */
export interface ServedRequest {
  readonly profile: Profile
  readonly request: ModelRequest
  readonly conversation: Conversation
  readonly backends: readonly Backend[]
  readonly routing: RequestRouting
  /** Its session, which may still be looked up; undefined if no provider caches its prompt. */
  readonly begun: SessionTurn | Promise<SessionTurn> | undefined
  readonly persister: ResponsePersister | undefined
  readonly previousResponseId: string | undefined
  readonly conversationId: string | undefined
}

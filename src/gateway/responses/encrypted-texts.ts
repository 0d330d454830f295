import { ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import type { JsonObject } from '../../domain/json.ts'
import { textBinding, type TextPurpose } from '../../domain/seal-bindings.ts'
import { SealError, type Sealer } from '../../runtime/sealer.ts'
import { yieldToEventLoop } from '../../runtime/yield-to-event-loop.ts'

interface ReadTextsDeps {
  readonly sealer: Sealer
  readonly log: EventLog
}

/** Decrypts a list of items. @throws ServiceError `response_not_found` if its encryption key no longer exists */
export async function readItems(
  deps: ReadTextsDeps,
  accountId: string,
  responseId: string,
  purpose: TextPurpose,
  sealed: string,
): Promise<readonly JsonObject[]> {
  return (await open(deps, accountId, responseId, purpose, sealed)) as readonly JsonObject[]
}

/** Decrypts an object. @throws ServiceError as `readItems`; `conversation_not_found` for data of a conversation */
export async function readObject(
  deps: ReadTextsDeps,
  accountId: string,
  ownerId: string,
  purpose: TextPurpose,
  sealed: string,
): Promise<JsonObject> {
  return (await open(deps, accountId, ownerId, purpose, sealed)) as JsonObject
}

async function open(
  { sealer, log }: ReadTextsDeps,
  accountId: string,
  ownerId: string,
  purpose: TextPurpose,
  sealed: string,
): Promise<unknown> {
  try {
    const text = sealer.open(textBinding(accountId, ownerId, purpose), sealed)
    await yieldToEventLoop(text)
    return JSON.parse(text)
  } catch (cause) {
    if (!(cause instanceof SealError)) throw cause
    log({ event: 'stored_text_unreadable', reason: cause.reason })
    const isConversation = purpose === 'metadata' || purpose === 'item'
    throw new ServiceError(isConversation ? 'conversation_not_found' : 'response_not_found', { cause })
  }
}

import type { JsonObject } from '../domain/conversation.ts'
import { ServiceError } from '../domain/errors.ts'
import type { EventLog } from '../domain/events.ts'
import { SealError, type Sealer } from '../domain/sealing.ts'

/** What a sealed text of a stored answer is: sealed for one, it does not open as another. */
export type TextPurpose = 'response' | 'input' | 'output'

interface ReadParts {
  readonly sealer: Sealer
  readonly log: EventLog
}

/** What a stored text is bound to: moved to another account, answer or place it does not open. */
export function textBinding(accountId: string, responseId: string, purpose: TextPurpose): readonly string[] {
  return [accountId, responseId, purpose]
}

/** Opens a list of items. @throws ServiceError `response_not_found` where the key that sealed it is gone */
export function readItems(
  parts: ReadParts,
  accountId: string,
  responseId: string,
  purpose: TextPurpose,
  sealed: string,
): readonly JsonObject[] {
  return open(parts, accountId, responseId, purpose, sealed) as readonly JsonObject[]
}

/** Opens an object. @throws as `readItems` */
export function readObject(
  parts: ReadParts,
  accountId: string,
  responseId: string,
  purpose: TextPurpose,
  sealed: string,
): JsonObject {
  return open(parts, accountId, responseId, purpose, sealed) as JsonObject
}

function open(
  { sealer, log }: ReadParts,
  accountId: string,
  responseId: string,
  purpose: TextPurpose,
  sealed: string,
): unknown {
  try {
    return JSON.parse(sealer.open(textBinding(accountId, responseId, purpose), sealed))
  } catch (cause) {
    if (!(cause instanceof SealError)) throw cause
    log({ event: 'store_failing', reason: `sealed text: ${cause.reason}` })
    throw new ServiceError('response_not_found', { cause })
  }
}

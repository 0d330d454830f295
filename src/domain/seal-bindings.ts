/**
 * What an encrypted text of a stored answer or conversation contains: text encrypted for one purpose does not decrypt
 * as another.
 */
export type TextPurpose = 'response' | 'input' | 'output' | 'metadata' | 'item'

/**
 * The context that a stored text is bound to: it does not decrypt for another account, answer, conversation, or
 * purpose (contract 12.3).
 */
export function textBinding(accountId: string, ownerId: string, purpose: TextPurpose): readonly string[] {
  return [accountId, ownerId, purpose]
}

/** The context that a provider credential is bound to (contract 21.2). */
export function credentialBinding(accountId: string, credentialId: string): readonly string[] {
  return [accountId, credentialId]
}

/** The context that a chunk of an answer is bound to; `response` is the response object of a background response. */
export function generationBinding(accountId: string, requestId: string, part: number | 'response'): readonly string[] {
  return [accountId, requestId, 'generation', String(part)]
}

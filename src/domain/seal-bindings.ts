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

/** The context that the secret of a webhook is bound to (contract 46.16). */
export function webhookBinding(accountId: string, webhookId: string): readonly string[] {
  return [accountId, webhookId, 'webhook']
}

/** The context that a chunk of an answer is bound to; `response` is the response object of a background response. */
export function generationBinding(accountId: string, requestId: string, part: number | 'response'): readonly string[] {
  return [accountId, requestId, 'generation', String(part)]
}

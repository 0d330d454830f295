import type { AssistantPart, JsonObject } from '../../domain/conversation.ts'

/** How sealed reasoning of this format is known again after it has travelled through another one. */
const thinkingSeal = 'anthropic.thinking.'
const redactedSeal = 'anthropic.redacted.'
/**
 * How the signature begins under which callers are given reasoning that is not this format's own. No issuer's mark stands
 * first, so a request that is relayed goes on without it (`unsealMember`).
 */
const foreignMark = 'svc-router.'

/** `sealed` for a block's signature; absent where it was not signed. */
export function sealOfThinking(signature: string): string | undefined {
  if (signature === '') return undefined
  if (!signature.startsWith(foreignMark)) return thinkingSeal + signature
  return signature === foreignMark ? undefined : signature.slice(foreignMark.length)
}

/** `sealed` for the data of a `redacted_thinking` block. */
export function sealOfRedacted(data: string): string {
  return redactedSeal + data
}

/** What stands in `sealed`: a signature, the data of a redacted block, or undefined for what another vendor sealed. */
export function openSeal(sealed: string): { readonly signature: string } | { readonly data: string } | undefined {
  if (sealed.startsWith(thinkingSeal)) return { signature: sealed.slice(thinkingSeal.length) }
  if (sealed.startsWith(redactedSeal)) return { data: sealed.slice(redactedSeal.length) }
  return undefined
}

/** The signature of a thinking block for a caller: the real one, or one that says that the reasoning is not Anthropic's. */
export function signatureFor(sealed: string | undefined): string {
  const opened = sealed === undefined ? undefined : openSeal(sealed)
  return opened !== undefined && 'signature' in opened ? opened.signature : `${foreignMark}${sealed ?? ''}`
}

/**
 * Reasoning as a block for a provider: with its seal where it is this format's own, without one only for servers that
 * want earlier reasoning back. Undefined where it may not be sent.
 */
export function writeReasoning(
  { text, sealed }: Extract<AssistantPart, { readonly type: 'reasoning' }>,
  replaysReasoning: boolean,
): JsonObject | undefined {
  const opened = sealed === undefined ? undefined : openSeal(sealed)
  if (opened !== undefined && 'data' in opened) return { type: 'redacted_thinking', data: opened.data }
  if (opened !== undefined) return { type: 'thinking', thinking: text, signature: opened.signature }
  return replaysReasoning && text !== '' ? { type: 'thinking', thinking: text, signature: '' } : undefined
}

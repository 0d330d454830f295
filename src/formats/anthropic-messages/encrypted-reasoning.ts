import type { AssistantPart } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'

/** Prefix that identifies this format's encrypted thinking after it passed through another format. */
const thinkingSeal = 'anthropic.thinking.'
const redactedSeal = 'anthropic.redacted.'
/**
 * Prefix of the signature under which callers get reasoning from other formats. It does not start with an issuer's
 * mark, so a relayed request drops it (`unmarkMember`).
 */
const foreignMark = 'svc-router.'

/** `sealed` for a block's signature; absent if the block was not signed. */
export function encryptedFromThinking(signature: string): string | undefined {
  if (signature === '') return undefined
  if (!signature.startsWith(foreignMark)) return thinkingSeal + signature
  return signature === foreignMark ? undefined : signature.slice(foreignMark.length)
}

/** `sealed` for the data of a `redacted_thinking` block. */
export function encryptedFromRedacted(data: string): string {
  return redactedSeal + data
}

/** The content of `sealed`: a signature, the data of a redacted block, or undefined if another vendor encrypted it. */
export function readEncrypted(sealed: string): { readonly signature: string } | { readonly data: string } | undefined {
  if (sealed.startsWith(thinkingSeal)) return { signature: sealed.slice(thinkingSeal.length) }
  if (sealed.startsWith(redactedSeal)) return { data: sealed.slice(redactedSeal.length) }
  return undefined
}

/**
 * The signature of a thinking block for a caller: the original, or one that says that the reasoning is not Anthropic's.
 */
export function signatureFrom(sealed: string | undefined): string {
  const opened = sealed === undefined ? undefined : readEncrypted(sealed)
  return opened !== undefined && 'signature' in opened ? opened.signature : `${foreignMark}${sealed ?? ''}`
}

/**
 * Reasoning as a block for a provider: with its signature if it is from this format, without one only for servers that
 * want earlier reasoning back. Undefined if it may not be sent.
 */
export function writeReasoning(
  { text, sealed }: Extract<AssistantPart, { readonly type: 'reasoning' }>,
  replaysReasoning: boolean,
): JsonObject | undefined {
  const opened = sealed === undefined ? undefined : readEncrypted(sealed)
  if (opened !== undefined && 'data' in opened) return { type: 'redacted_thinking', data: opened.data }
  if (opened !== undefined) return { type: 'thinking', thinking: text, signature: opened.signature }
  return replaysReasoning && text !== '' ? { type: 'thinking', thinking: text, signature: '' } : undefined
}

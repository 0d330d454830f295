import { terminalLine } from '../runtime/safe-text.ts'
import { SealError, type Sealer } from '../runtime/sealer.ts'
import { isObject, parseObject } from './json.ts'
import { maskSecrets } from './secret-shapes.ts'

/** Maximum length of a stored provider message (contract 21.11). */
const maxProviderErrorCharacters = 1_000
/** Extra length that is read, so that a secret at the end is masked before the text is truncated. */
const marginCharacters = 200
/** How much of a body is searched for a message. */
const maxBodyCharacters = 64 * 1024

/** The error message of a failed backend, for the owner of that backend only (contract 21.11). */
export interface ProviderError {
  readonly requestId: string
  readonly backend: string
  readonly atMs: number
  /** One line of at most 1,000 characters, without control characters and with credentials masked. */
  readonly text: string
}

/** The same, as it is stored. */
export interface SealedProviderError extends Omit<ProviderError, 'text'> {
  readonly id: string
  /** The account that owns the backend; null for configured backends, which the operator owns. */
  readonly accountId: string | null
  readonly sealed: string
}

/** The context that an encrypted message is bound to. */
export function providerErrorBinding(accountId: string | null, requestId: string): readonly string[] {
  return [accountId ?? 'operator', requestId, 'provider-error']
}

/** Decrypts stored messages. Omits those whose key no longer exists. */
export function openProviderErrors(sealer: Sealer, kept: readonly SealedProviderError[]): readonly ProviderError[] {
  return kept.flatMap(({ requestId, backend, accountId, atMs, sealed }) => {
    try {
      return [{ requestId, backend, atMs, text: sealer.open(providerErrorBinding(accountId, requestId), sealed) }]
    } catch (error) {
      if (error instanceof SealError) return []
      throw error
    }
  })
}

/**
 * The message in the body of a rejection or in an error event of a stream, ready for display; undefined if there is
 * none. If no message is found, the result is the body itself, unless it may be part of an answer.
 */
export function readProviderError(body: string, mayBeAnswer = false): string | undefined {
  const bounded = body.slice(0, maxBodyCharacters)
  const message = messageIn(parseObject(bounded)) ?? messageInEvents(bounded) ?? (mayBeAnswer ? '' : bounded)
  const masked = maskSecrets(message.slice(0, maxProviderErrorCharacters + marginCharacters))
  const line = terminalLine(masked.replaceAll(/[\r\n\t]+/g, ' '))
    .trim()
    .slice(0, maxProviderErrorCharacters)
  return line === '' ? undefined : line
}

function messageIn(answer: unknown): string | undefined {
  if (!isObject(answer)) return undefined
  const { message, detail, response } = answer
  const error = answer['error'] ?? (isObject(response) ? response['error'] : undefined)
  const found = isObject(error) ? (error['message'] ?? error) : (error ?? message ?? detail)
  if (found === undefined || found === null) return undefined
  return typeof found === 'string' ? found : JSON.stringify(found)
}

function messageInEvents(text: string): string | undefined {
  for (const line of text.split('\n')) {
    const found = line.startsWith('data:') ? messageIn(parseObject(line.slice('data:'.length))) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

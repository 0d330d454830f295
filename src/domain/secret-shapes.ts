/** The shape of a text that must not be shown, and its name for people. */
export interface SecretShape {
  readonly kind: string
  /** With the flag `g`. */
  readonly shape: RegExp
}

/** The kind of a text that only looks random. */
export const unknownCredential = 'a credential'

/** The shapes of provider keys, tokens, and private keys. No name, model, or path has any of them. */
export const credentialShapes: readonly SecretShape[] = [
  {
    kind: 'a provider key',
    shape:
      /(?<![A-Za-z0-9])(?:sk|pk|rk|gsk|xai|pplx|nvapi|tgp)[-_](?:(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{6,}|[A-Za-z0-9_-]{16,})/g,
  },
  { kind: 'an access token', shape: /(?<![A-Za-z0-9])(?:hf|ghp|gho)_[A-Za-z0-9]{12,}/g },
  { kind: 'a Google key', shape: /AIza[A-Za-z0-9_-]{20,}/g },
  { kind: 'an AWS key', shape: /(?<![A-Za-z0-9])AKIA[A-Z0-9]{12,}/g },
  { kind: 'a signed token (JWT)', shape: /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]*/g },
  { kind: 'a private key', shape: /-----BEGIN[A-Z -]{0,40}PRIVATE KEY/g },
  { kind: 'a password in an address', shape: /(?<=:\/\/)[^/\s@:]*:[^/\s@]+(?=@)/g },
  { kind: unknownCredential, shape: /(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{22,}={1,2}/g },
  { kind: unknownCredential, shape: /(?<![A-Za-z0-9])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{32,}(?![A-Za-z0-9])/gi },
  {
    kind: unknownCredential,
    shape: /(?<![A-Za-z0-9])(?=[A-Za-z0-9]*[A-Z])(?=[A-Za-z0-9]*[a-z])(?=[A-Za-z0-9]*\d)[A-Za-z0-9]{20,}/g,
  },
]

/** The id of a Stripe price. It looks like a token but is public. */
const publicIds = /(?<![A-Za-z0-9])price_[A-Za-z0-9]{1,64}(?![A-Za-z0-9])/g

/**
 * Whether a text contains something that looks like a credential, which belongs in an environment variable (contract
 * 31.3).
 */
export function holdsSecret(text: string): boolean {
  const rest = text.replace(publicIds, '')
  return credentialShapes.some(({ shape }) => rest.search(shape) >= 0)
}

/**
 * The text with credentials replaced by asterisks of the same length, so that a caret below still points to the right
 * place.
 */
export function maskSecrets(text: string): string {
  let masked = text
  for (const { shape } of credentialShapes) masked = masked.replace(shape, (found) => '*'.repeat(found.length))
  return masked
}

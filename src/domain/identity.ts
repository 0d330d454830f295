/** How somebody proved who they are. */
export type SignInMethod = 'email' | 'link' | 'passkey'

/** A browser that is signed in to an account. Of its token only a digest is kept. */
export interface Session {
  /** `ses_…`, for showing and ending it; whoever knows it cannot use it. */
  readonly id: string
  readonly accountId: string
  readonly method: SignInMethod
  /** The browser in few words, such as `Firefox on Linux`. */
  readonly agent: string
  readonly createdAtMs: number
  readonly lastSeenAtMs: number
  /** The end that no use puts off. */
  readonly expiresAtMs: number
}

/**
 * What a code or link leads to: in; in, and an account where there is none yet; in, with a new key; one more address of an
 * account.
 */
export type AccountPurpose = 'sign_in' | 'set_up' | 'recover' | 'add_email'
/** Those, and for the operator's console: in; or that it is still the operator who sits there. */
export type ProofPurpose = AccountPurpose | 'operator_sign_in' | 'operator_confirm'

/** Whose proofs they are: neither's code or link is ever good for the other. */
export type Realm = 'account' | 'operator'

/** Whose proof one of this purpose is. */
export function realmOf(purpose: ProofPurpose): Realm {
  return purpose === 'operator_sign_in' || purpose === 'operator_confirm' ? 'operator' : 'account'
}

/** A proof that is asked for: who holds `address`, or was given the link, may use it once (contract 19.2). */
export interface SignInProof {
  /** `prf_…`. It names the proof on the page that asks for the code, and proves nothing. */
  readonly id: string
  readonly purpose: ProofPurpose
  /** The email that the code went to; null where whoever runs the service made a link for an account. */
  readonly address: string | null
  /** The account that the link is for, or that the email is added to. */
  readonly accountId: string | null
  /** The operator that the link is for; or the operator and the session that the code confirms. */
  readonly forOperator?: { readonly operatorId: string; readonly sessionId: string | null }
  readonly createdAtMs: number
  readonly expiresAtMs: number
}

/** An email address of an account: proven, and of one account only. */
export interface AccountEmail {
  readonly address: string
  readonly accountId: string
  readonly createdAtMs: number
}

/** A passkey of an account: what its browser or device proved to hold. */
export interface Passkey {
  /** As the browser calls it, in base64url. */
  readonly id: string
  readonly accountId: string
  /** For recognising it, such as `Chrome on Linux`. */
  readonly name: string
  /** COSE, in base64url. */
  readonly publicKey: string
  /** What it said last of how often it signed; 0 for those that do not count. */
  readonly counter: number
  readonly transports: readonly string[]
  readonly createdAtMs: number
  readonly lastUsedAtMs: number | null
}

/** The longest address that mail can carry (RFC 5321, 4.5.3.1). */
const maxAddressCharacters = 254
const addressShape = /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/

/** An email address as it is kept and compared; undefined where the text is none. */
export function readEmailAddress(text: string): string | undefined {
  const address = text.trim().toLowerCase()
  if (address.length > maxAddressCharacters || !addressShape.test(address) || address.includes('..')) return undefined
  return address
}

/** An address that its owner recognises and nobody else learns: `m…@example.com`. */
export function maskEmailAddress(address: string): string {
  const at = address.lastIndexOf('@')
  return `${address.slice(0, 1)}…${address.slice(at)}`
}

/** How a person proved their identity. */
export type SignInMethod = 'email' | 'link' | 'passkey'

/** A browser that is signed in to an account. Only a digest of its token is stored. */
export interface Session {
  /** `ses_…`, to display and end it. The id does not authenticate. */
  readonly id: string
  readonly accountId: string
  readonly method: SignInMethod
  /** The browser in a few words, such as `Firefox on Linux`. */
  readonly agent: string
  readonly createdAtMs: number
  readonly lastSeenAtMs: number
  /** The end, which activity does not postpone. */
  readonly expiresAtMs: number
}

/**
 * What a code or link does: signs in; signs in and creates the account if necessary; signs in and creates a new key;
 * adds an email address to an account (contract 19.8).
 */
export type AccountPurpose = 'sign_in' | 'set_up' | 'recover' | 'add_email'
/** Also for operators: signs in to the console, or confirms the operator's identity again. */
export type ProofPurpose = AccountPurpose | 'operator_sign_in' | 'operator_confirm'

/** Who a proof belongs to. A code or link of one realm is never valid in the other. */
export type Realm = 'account' | 'operator'

/** The realm of a purpose. */
export function realmOf(purpose: ProofPurpose): Realm {
  return purpose === 'operator_sign_in' || purpose === 'operator_confirm' ? 'operator' : 'account'
}

/** A requested proof: the owner of `address`, or the receiver of the link, can use it once (contract 19.2). */
export interface SignInProof {
  /** `prf_…`. Identifies the proof on the page that asks for the code. It does not authenticate. */
  readonly id: string
  readonly purpose: ProofPurpose
  /** The address that received the code; null for a link that the person who runs the service created. */
  readonly address: string | null
  /** The account that the link signs in to, or that gets the email address. */
  readonly accountId: string | null
  /** The operator that the link signs in; or the operator and session that the code confirms. */
  readonly forOperator?: { readonly operatorId: string; readonly sessionId: string | null }
  readonly createdAtMs: number
  readonly expiresAtMs: number
}

/** A verified email address, which belongs to one account only. */
export interface AccountEmail {
  readonly address: string
  readonly accountId: string
  readonly createdAtMs: number
}

/** A passkey of an account. */
export interface Passkey {
  /** The credential id from the browser, in base64url. */
  readonly id: string
  readonly accountId: string
  /** For display, such as `Chrome on Linux`. */
  readonly name: string
  /** The public key in COSE, base64url. */
  readonly publicKey: string
  /** The authenticator's last signature count; 0 for authenticators that do not count. */
  readonly counter: number
  readonly transports: readonly string[]
  readonly createdAtMs: number
  readonly lastUsedAtMs: number | null
}

/** The maximum length of an email address (RFC 5321, 4.5.3.1). */
const maxAddressCharacters = 254
const addressShape = /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/

/** An email address in the form that is stored and compared; undefined if the text is not one. */
export function readEmailAddress(text: string): string | undefined {
  const address = text.trim().toLowerCase()
  if (address.length > maxAddressCharacters || !addressShape.test(address) || address.includes('..')) return undefined
  return address
}

/** An email address that only its owner recognizes: `m…@example.com`. */
export function maskEmailAddress(address: string): string {
  const at = address.lastIndexOf('@')
  return `${address.slice(0, 1)}…${address.slice(at)}`
}

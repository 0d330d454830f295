/** Sign-in methods and sessions, for accounts and for the operator's console. */
export interface IdentityTables {
  emails: EmailRow
  sign_in_proofs: ProofRow
  sessions: SessionRow
  passkeys: PasskeyRow
  used_challenges: ChallengeRow
  operators: OperatorRow
  operator_sessions: OperatorSessionRow
  admin_tokens: AdminTokenRow
}

export interface EmailRow {
  address: string
  account_id: string
  created_at_ms: number
}

export interface ProofRow {
  id: string
  purpose: string
  address: string | null
  account_id: string | null
  /** The operator that a link signs in, or whose session a code confirms. */
  operator_id: string | null
  operator_session_id: string | null
  code_digest: string | null
  link_digest: string
  /** Digest of the requesting network, by which emails are counted; null if no network requested it. */
  network: string | null
  tries: number
  created_at_ms: number
  expires_at_ms: number
  used_at_ms: number | null
}

export interface SessionRow {
  /** HMAC of the token in base64url; the token itself is not stored. */
  digest: string
  id: string
  account_id: string
  method: string
  agent: string
  created_at_ms: number
  last_seen_at_ms: number
  expires_at_ms: number
}

export interface PasskeyRow {
  id: string
  account_id: string
  name: string
  public_key: string
  counter: number
  transports: string
  created_at_ms: number
  last_used_at_ms: number | null
}

/** A used challenge, until it would have expired anyway. */
interface ChallengeRow {
  digest: string
  expires_at_ms: number
}

export interface OperatorRow {
  id: string
  email: string
  role: string
  state: string
  created_at_ms: number
  removed_at_ms: number | null
}

export interface OperatorSessionRow {
  /** HMAC of the token in base64url, as for a session. */
  digest: string
  id: string
  operator_id: string
  method: string
  agent: string
  created_at_ms: number
  last_seen_at_ms: number
  expires_at_ms: number
  confirmed_at_ms: number
}

/** A token of the admin API. */
export interface AdminTokenRow {
  id: string
  /** HMAC of the token in base64url, as for a session; unique. */
  digest: string
  hint: string
  name: string
  scope: string
  /** Null if the command line created it. */
  operator_id: string | null
  created_at_ms: number
  expires_at_ms: number
  last_used_at_ms: number | null
  revoked_at_ms: number | null
}

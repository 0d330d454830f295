import type { Upstream } from '../domain/accounts.ts'
import { publicKeyId } from '../domain/cloud-credentials.ts'
import { idMinter } from '../runtime/ids.ts'
import type { Secret } from '../runtime/secret.ts'
import { AccountsError } from './accounts-error.ts'
import { auditRecord, type AccountsDeps } from './control-plane.ts'

/** Connections of one account (contract 21.4). */
export const maxUpstreamsPerAccount = 20
const maxCredentialCharacters = 8192
/** Shorter credentials get no hint. */
const minHintedCharacters = 16
const hintCharacters = 4

/** A provider that an account connects; the credential is encrypted before it is stored (contract 21.2). */
export interface UpstreamDraft {
  readonly provider: string
  readonly model: string
  readonly baseUrl: string | null
  readonly format: Upstream['format']
  readonly authHeader: string | null
  readonly credential: Secret | undefined
  readonly timeouts?: Upstream['timeouts']
  readonly headers?: Upstream['headers']
}

/** Encrypts a credential so that only this account and id can decrypt it. */
export type SealCredential = (accountId: string, credentialId: string, secret: Secret) => string

/** An upstream that is not saved yet but can be tested. */
export type PreparedUpstream = Omit<Upstream, 'position'>

/** Connects a provider, after all others in order. @throws AccountsError as `prepareUpstream` and `saveUpstream` */
export async function addUpstream(
  deps: AccountsDeps,
  accountId: string,
  draft: UpstreamDraft,
  seal: SealCredential,
): Promise<PreparedUpstream> {
  const upstream = await prepareUpstream(deps, accountId, draft, seal)
  await saveUpstream(deps, upstream)
  return upstream
}

/** Validates and encrypts, but does not save. @throws AccountsError `account_unknown`, `credential_invalid` */
export async function prepareUpstream(
  deps: AccountsDeps,
  accountId: string,
  draft: UpstreamDraft,
  seal: SealCredential,
): Promise<PreparedUpstream> {
  const { credential, ...rest } = draft
  if (credential !== undefined && !isCredential(credential.reveal())) throw new AccountsError('credential_invalid')
  if ((await deps.store.findAccount(accountId)) === undefined) throw new AccountsError('account_unknown')
  const nowMs = (): number => deps.clock.nowMs()
  const id = idMinter('ups_', nowMs, deps.random)()
  return {
    ...rest,
    id,
    accountId,
    sealedCredential: credential === undefined ? null : seal(accountId, id, credential),
    credentialHint: credential === undefined ? null : hintOf(credential.reveal()),
    createdAtMs: Math.floor(nowMs()),
  }
}

/** Saves a prepared upstream, after all others in order. @throws AccountsError `upstream_limit` */
export async function saveUpstream(deps: AccountsDeps, upstream: PreparedUpstream): Promise<void> {
  const { id, accountId, provider } = upstream
  const record = auditRecord(deps, { type: 'upstream.added', accountId, upstreamId: id, provider })
  if (!(await deps.store.addUpstream(upstream, maxUpstreamsPerAccount, record)))
    throw new AccountsError('upstream_limit')
}

/** Disconnects a provider and deletes its encrypted credential. @throws AccountsError `upstream_unknown` */
export async function removeUpstream(deps: AccountsDeps, accountId: string, upstreamId: string): Promise<void> {
  const record = auditRecord(deps, { type: 'upstream.removed', accountId, upstreamId })
  if (!(await deps.store.removeUpstream(accountId, upstreamId, record))) throw new AccountsError('upstream_unknown')
}

/** One line of visible characters, used as a header value, or a cloud credential used for signing. */
function isCredential(text: string): boolean {
  if (text.length > maxCredentialCharacters) return false
  return /^[\x21-\x7e]+$/.test(text) || publicKeyId(text) !== undefined
}

/**
 * For a cloud credential, the end of its key id, which is not secret: its own last characters are the same in all of
 * them.
 */
function hintOf(credential: string): string | null {
  const text = publicKeyId(credential) ?? credential
  return text.length < minHintedCharacters ? null : text.slice(-hintCharacters)
}

import { publicKeyId } from '../domain/cloud-credentials.ts'
import type { Upstream } from '../domain/accounts.ts'
import { idMinter } from '../domain/ids.ts'
import type { Secret } from '../domain/secret.ts'
import { recordOf, type ControlPlane } from './control-plane.ts'
import { AccountsError } from './refusals.ts'

export const maxUpstreamsPerAccount = 20
const maxCredentialCharacters = 8192
/** Shorter credentials show none of themselves. */
const minHintedCharacters = 16
const hintCharacters = 4

/** What an account connects: the credential is sealed before it is kept (contract 21.2). */
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

/** Seals a credential so that it opens for this account and this id alone. */
export type SealCredential = (accountId: string, credentialId: string, secret: Secret) => string

/** An upstream that is not saved yet: it can be tested. */
export type PreparedUpstream = Omit<Upstream, 'position'>

/** Connects a provider, behind all others. @throws AccountsError as `prepareUpstream` and `saveUpstream` */
export async function addUpstream(
  plane: ControlPlane,
  accountId: string,
  draft: UpstreamDraft,
  seal: SealCredential,
): Promise<PreparedUpstream> {
  const upstream = await prepareUpstream(plane, accountId, draft, seal)
  await saveUpstream(plane, upstream)
  return upstream
}

/** Checks and seals, and saves nothing. @throws AccountsError `account_unknown`, `credential_invalid` */
export async function prepareUpstream(
  plane: ControlPlane,
  accountId: string,
  draft: UpstreamDraft,
  seal: SealCredential,
): Promise<PreparedUpstream> {
  const { credential, ...rest } = draft
  if (credential !== undefined && !isCredential(credential.reveal())) throw new AccountsError('credential_invalid')
  if ((await plane.store.findAccount(accountId)) === undefined) throw new AccountsError('account_unknown')
  const nowMs = (): number => plane.clock.nowMs()
  const id = idMinter('ups_', nowMs, plane.random)()
  return {
    ...rest,
    id,
    accountId,
    sealedCredential: credential === undefined ? null : seal(accountId, id, credential),
    credentialHint: credential === undefined ? null : hintOf(credential.reveal()),
    createdAtMs: Math.floor(nowMs()),
  }
}

/** Saves a prepared upstream, behind all others. @throws AccountsError `upstream_limit` */
export async function saveUpstream(plane: ControlPlane, upstream: PreparedUpstream): Promise<void> {
  const { id, accountId, provider } = upstream
  const record = recordOf(plane, { type: 'upstream.added', accountId, upstreamId: id, provider })
  if (!(await plane.store.addUpstream(upstream, maxUpstreamsPerAccount, record)))
    throw new AccountsError('upstream_limit')
}

/** Disconnects a provider; its sealed credential is gone. @throws AccountsError `upstream_unknown` */
export async function removeUpstream(plane: ControlPlane, accountId: string, upstreamId: string): Promise<void> {
  const record = recordOf(plane, { type: 'upstream.removed', accountId, upstreamId })
  if (!(await plane.store.removeUpstream(accountId, upstreamId, record))) throw new AccountsError('upstream_unknown')
}

/** One line of visible characters, which becomes the value of a header; or a cloud credential, which signs. */
function isCredential(text: string): boolean {
  if (text.length > maxCredentialCharacters) return false
  return /^[\x21-\x7e]+$/.test(text) || publicKeyId(text) !== undefined
}

/** Of a cloud credential the end of its key's id, which is no secret: its last characters are the same in all of them. */
function hintOf(credential: string): string | null {
  const text = publicKeyId(credential) ?? credential
  return text.length < minHintedCharacters ? null : text.slice(-hintCharacters)
}

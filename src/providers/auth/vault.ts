import { credentialBinding } from '../../domain/seal-bindings.ts'
import type { RandomBytes } from '../../runtime/random.ts'
import { createSealer, SealError, type SealingKeys } from '../../runtime/sealer.ts'
import { Secret } from '../../runtime/secret.ts'

const longestSealed = 32 * 1024

/** Encrypts provider credentials for the database, bound to their account and id (contract 21.2). */
export interface Vault {
  /** As `Sealer.seal`. */
  seal(accountId: string, credentialId: string, secret: Secret): string
  /** @throws SealError if it cannot be decrypted for that account and id */
  open(accountId: string, credentialId: string, sealed: string): Secret
}

/** @throws TypeError for a key of another length or a bad id */
export function createVault(options: SealingKeys & { readonly random: RandomBytes }): Vault {
  const sealer = createSealer(options)
  return {
    seal: (accountId, credentialId, secret) => sealer.seal(credentialBinding(accountId, credentialId), secret.reveal()),
    open(accountId, credentialId, sealed) {
      if (sealed.length > longestSealed) throw new SealError('malformed')
      return new Secret(sealer.open(credentialBinding(accountId, credentialId), sealed))
    },
  }
}

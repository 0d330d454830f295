import { createHash } from 'node:crypto'
import type { Secret } from '../runtime/secret.ts'
import type { ConfigSecrets } from './config.ts'

const idCharacters = 12

/**
 * The sealing keys with ids that are derived from them. Encrypted values name the id of their key, so a changed key is
 * detected.
 */
export function sealingKeys(secrets: ConfigSecrets): { current: NamedKey; previous: NamedKey | undefined } {
  const current = named(secrets.sealingKey)
  const previous = secrets.previousSealingKey === undefined ? undefined : named(secrets.previousSealingKey)
  return { current, previous: previous?.id === current.id ? undefined : previous }
}

interface NamedKey {
  readonly id: string
  readonly key: Secret<Uint8Array>
}

function named(key: Secret<Uint8Array>): NamedKey {
  const digest = createHash('sha256').update('svc-router sealing key id\n').update(key.reveal()).digest('base64url')
  return { id: digest.slice(0, idCharacters), key }
}

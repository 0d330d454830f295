import type { StoredKey, Upstream } from '../domain/accounts.ts'
import { playgroundKeyId } from '../domain/keys.ts'

/** What an account calls what its records name by id. */
export interface Names {
  readonly key: (keyId: string) => string
  readonly backend: (backendId: string) => string
}

/** What stands for the key of a request that was made in the playground. */
export const playgroundName = 'Playground'

/** Names by id; the id itself where nothing of that id is there any more. */
export function namesOf(keys: readonly StoredKey[], upstreams: readonly Upstream[]): Names {
  const keyNames = new Map([[playgroundKeyId, playgroundName], ...keys.map(({ id, name }) => [id, name] as const)])
  const backendNames = new Map(upstreams.map(({ id, provider, model }) => [id, `${provider}: ${model} (yours)`]))
  return {
    key: (keyId) => keyNames.get(keyId) ?? keyId,
    backend: (backendId) => backendNames.get(backendId) ?? backendId,
  }
}

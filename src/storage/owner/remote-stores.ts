import type { AskOptions, OwnerConnection } from './owner-connection.ts'
import type { Question } from './owner-messages.ts'

/** Longer than the owner works on any call: each of its statements has 5 s. */
const limits: AskOptions = { limitMs: 30_000 }

/**
 * A store whose methods run in the owner's process: one method is one message in each direction, and its transaction is
 * never held by a worker. `parts` are served as they are. Closing it does nothing.
 */
export function remoteStore<Store extends object>(
  owner: OwnerConnection,
  noun: string,
  parts: Partial<Store> = {},
): Store {
  const methods = new Map<string, (...args: unknown[]) => Promise<unknown>>([['close', async () => {}]])
  const methodOf = (method: string): ((...args: unknown[]) => Promise<unknown>) => {
    let found = methods.get(method)
    if (found === undefined) {
      found = (...args) => owner.ask({ do: 'store', noun, method, args } satisfies Question, limits)
      methods.set(method, found)
    }
    return found
  }
  return new Proxy(parts as Store, {
    get(target, name) {
      if (Object.hasOwn(target, name)) return target[name as keyof Store]
      // A store is no promise, although `await` asks whether it is one.
      return typeof name === 'string' && name !== 'then' ? methodOf(name) : undefined
    },
  })
}

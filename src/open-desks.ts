import type { LeakedKeysNeeds } from './accounts/leaked-keys.ts'
import { writeLeakMail } from './accounts/mails.ts'
import { checkReadiness, type ReadinessNeeds } from './accounts/managed-readiness.ts'
import type { SendMail } from './accounts/ports.ts'
import type { Config } from './config/config.ts'
import type { Clock } from './domain/clock.ts'
import type { ManagedReadiness } from './domain/managed-access.ts'
import type { RandomBytes } from './domain/random.ts'
import type { Storage } from './open-storage.ts'

/** The checks write to the disk: however many look at the page, they are made once in this time. */
const readinessMs = 5_000

/** The switch and the three checks as they stood a few seconds ago at most. */
export function recentReadiness(needs: ReadinessNeeds): () => Promise<ManagedReadiness> {
  let last: { readonly found: Promise<ManagedReadiness>; readonly atMs: number } | undefined
  return () => {
    const nowMs = needs.clock.nowMs()
    if (last === undefined || nowMs - last.atMs >= readinessMs) {
      const found = checkReadiness(needs, 'always')
      found.catch(() => {
        last = undefined
      })
      last = { found, atMs: nowMs }
    }
    return last.found
  }
}

interface LeakNeeds {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: RandomBytes
  readonly sendMail: SendMail | undefined
}

/** What revokes keys that were found, and tells every address of the account. */
export function openLeaks(
  { secrets, appUrl }: Config,
  { storage: { store }, clock, random, sendMail }: LeakNeeds,
): LeakedKeysNeeds {
  const { pepper, previousPepper } = secrets
  return {
    plane: { store, clock, random, pepper, actor: { kind: 'system' } },
    peppers: previousPepper === undefined ? [pepper] : [pepper, previousPepper],
    async notify(notice) {
      const emails = await store.listEmails(notice.accountId)
      if (emails.length === 0 || sendMail === undefined)
        throw new Error('the account has no address that letters reach')
      await Promise.all(emails.map(({ address }) => sendMail(writeLeakMail(address, notice, `${appUrl}/account/keys`))))
    },
  }
}

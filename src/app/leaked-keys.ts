import type { LeakedKeysDeps } from '../accounts/leaked-keys/leaked-keys.ts'
import { createReportTaker, type TakeScanningReport } from '../accounts/leaked-keys/scanning-report.ts'
import { Scanner } from '../accounts/leaked-keys/scanning-keys.ts'
import { writeLeakMail } from '../accounts/identity/sign-in-mails.ts'
import type { SendMail } from '../accounts/ports.ts'
import type { Config } from '../config/config.ts'
import type { Clock } from '../runtime/clock.ts'
import type { EventLog } from '../domain/events.ts'
import type { RandomBytes } from '../runtime/random.ts'
import { readScanningKeys } from '../domain/secret-scanning.ts'
import { UpstreamError } from '../domain/upstream.ts'
import type { Providers } from './providers.ts'
import type { Storage } from './storage.ts'

/** Whoever reports a key waits no longer than this for the letters to its owner; they are sent all the same. */
const lettersMs = 5_000

interface OpenLeaksDeps {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: RandomBytes
  readonly sendMail: SendMail | undefined
}

/** What revokes keys that were found, and tells every address of the account. */
export function openLeakedKeys(
  { secrets, appUrl }: Config,
  { storage: { store }, clock, random, sendMail }: OpenLeaksDeps,
): LeakedKeysDeps {
  const { pepper, previousPepper } = secrets
  return {
    plane: { store, clock, random, pepper, actor: { kind: 'system' } },
    peppers: previousPepper === undefined ? [pepper] : [pepper, previousPepper],
    async notify({ accountId, keys }) {
      const emails = await store.listEmails(accountId)
      if (emails.length === 0 || sendMail === undefined)
        throw new Error('the account has no address that letters reach')
      const letters = emails.map(({ address }) => sendMail(writeLeakMail(address, keys, `${appUrl}/account/keys`)))
      await withinMs(clock, lettersMs, Promise.allSettled(letters))
    },
  }
}

/** Waits for something, but no longer than that. */
async function withinMs(clock: Clock, limitMs: number, something: Promise<unknown>): Promise<void> {
  const limit = Promise.withResolvers<void>()
  const timer = clock.after(limitMs, limit.resolve)
  await Promise.race([something, limit.promise])
  timer.cancel()
}

interface OpenScanningDeps {
  readonly providers: Pick<Providers, 'getText'>
  readonly leaks: LeakedKeysDeps
  readonly clock: Clock
  readonly log: EventLog
}

/** What takes the reports of GitHub's secret scanning, checked by the public keys that are read from GitHub. */
export function openScanning({ scanningKeysUrl }: Config, deps: OpenScanningDeps): TakeScanningReport {
  const { providers, leaks, clock, log } = deps
  const scanner = new Scanner({
    clock,
    async fetchKeys() {
      try {
        const keys = readScanningKeys(await providers.getText(scanningKeysUrl))
        if (keys.length === 0) throw new UpstreamError('broken')
        return keys
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error
        log({ event: 'scanning_keys_failing', reason: error.outcome })
        return []
      }
    },
  })
  return createReportTaker({ scanner, leaks, log })
}

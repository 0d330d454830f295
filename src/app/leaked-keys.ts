import { writeLeakMail } from '../accounts/identity/sign-in-mails.ts'
import type { LeakedKeysDeps } from '../accounts/leaked-keys/leaked-keys.ts'
import { Scanner } from '../accounts/leaked-keys/scanning-keys.ts'
import { createReportHandler, type HandleScanningReport } from '../accounts/leaked-keys/scanning-report.ts'
import type { SendMail } from '../accounts/ports.ts'
import { readScanningKeys } from '../domain/secret-scanning.ts'
import { UpstreamError } from '../domain/upstream.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Providers } from './providers.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

/** A report of a key waits at most this long for the email to its owner, which is sent in any case. */
const emailWaitMs = 5_000

interface OpenLeakedKeysDeps {
  readonly storage: Storage
  readonly sendMail: SendMail | undefined
}

/** Revokes keys that were found in public, and emails every address of the account. */
export function openLeakedKeys(
  { config: { secrets, appUrl }, clock, random, peppers }: Runtime,
  { storage: { store }, sendMail }: OpenLeakedKeysDeps,
): LeakedKeysDeps {
  return {
    accountsDeps: { store, clock, random, pepper: secrets.pepper, actor: { kind: 'system' } },
    peppers,
    async notify({ accountId, keys }) {
      const emails = await store.listEmails(accountId)
      if (emails.length === 0 || sendMail === undefined) throw new Error('the account cannot receive email')
      const sending = emails.map(({ address }) => sendMail(writeLeakMail(address, keys, `${appUrl}/account/keys`)))
      await waitAtMost(clock, emailWaitMs, Promise.allSettled(sending))
    },
  }
}

async function waitAtMost(clock: Clock, limitMs: number, promise: Promise<unknown>): Promise<void> {
  const limit = Promise.withResolvers<void>()
  const timer = clock.after(limitMs, limit.resolve)
  await Promise.race([promise, limit.promise])
  timer.cancel()
}

interface OpenScanningDeps {
  readonly providers: Pick<Providers, 'getText'>
  readonly leaks: LeakedKeysDeps
}

/** Accepts reports from GitHub's secret scanning, verified with GitHub's public keys. */
export function openScanning(
  { config: { scanningKeysUrl }, clock, log }: Runtime,
  { providers, leaks }: OpenScanningDeps,
): HandleScanningReport {
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
  return createReportHandler({ scanner, leaks, log })
}

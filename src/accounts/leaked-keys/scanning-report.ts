import type { EventLog } from '../../domain/events.ts'
import { readScanningMatches, scanningHeaders, tokenHash, type ScanningMatch } from '../../domain/secret-scanning.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import { revokeLeakedKeys, type LeakedKeysDeps } from './leaked-keys.ts'
import { ScanningKeysUnavailable, type Scanner } from './scanning-keys.ts'

/** Concurrent reports; a sender of more is asked to wait. */
const maxConcurrent = 16
const busyRetryMs = 5_000

export interface ScanningDeps {
  readonly scanner: Pick<Scanner, 'isAuthentic'>
  readonly leaks: LeakedKeysDeps
  readonly log: EventLog
}

/**
 * Whether a reported token is a key that this service issued, in GitHub's terms, with its SHA-256 digest (hex) instead
 * of the token, so that no answer contains a key (contract 26.5).
 */
interface TokenLabel {
  readonly token_hash: string
  readonly token_type: string
  readonly label: 'true_positive' | 'false_positive'
}

/** The answer to a report. `outcome` says why and may be shown to its sender. */
type ReportAnswer =
  | { readonly status: 200; readonly labels: readonly TokenLabel[] }
  | { readonly status: 400 | 403; readonly outcome: 'unreadable' | 'refused' }
  | { readonly status: 503; readonly outcome: 'busy' | 'try again'; readonly retryAfterMs: number }

/** Handles one report, given the exact body bytes. */
export type HandleScanningReport = (
  body: Uint8Array,
  headers: { get(name: string): string | null },
) => Promise<ReportAnswer>

/**
 * Handles reports of GitHub's secret scanning partner program. The signature over the raw body is verified before
 * anything is parsed; then every key of this service in it is revoked, with the service as the actor, and its owner
 * notified. A repeated report changes nothing (contract 26.6). Never throws.
 */
export function createReportHandler(deps: ScanningDeps): HandleScanningReport {
  let running = 0
  return async (body, headers) => {
    if (running >= maxConcurrent) return { status: 503, outcome: 'busy', retryAfterMs: busyRetryMs }
    running += 1
    try {
      const keyId = headers.get(scanningHeaders.keyId) ?? undefined
      const signature = headers.get(scanningHeaders.signature) ?? undefined
      if (!(await deps.scanner.isAuthentic({ body, keyId, signature }))) return { status: 403, outcome: 'refused' }
      const matches = readScanningMatches(body)
      return matches === undefined
        ? { status: 400, outcome: 'unreadable' }
        : { status: 200, labels: await handle(deps, matches) }
    } catch (error) {
      const isKeys = error instanceof ScanningKeysUnavailable
      if (!isKeys) deps.log({ event: 'store_failing', reason: errorName(error) })
      return { status: 503, outcome: 'try again', retryAfterMs: isKeys ? error.retryAfterMs : busyRetryMs }
    } finally {
      running -= 1
    }
  }
}

async function handle(deps: ScanningDeps, matches: readonly ScanningMatch[]): Promise<readonly TokenLabel[]> {
  const texts = matches.map(({ text, url }) => ({ text, foundAt: url }))
  const outcomes = await revokeLeakedKeys(deps.leaks, texts)
  const revoked = new Set(outcomes.filter(({ state }) => state === 'revoked').map(({ keyId }) => keyId)).size
  deps.log({ event: 'leak_report', reported: matches.length, revoked })
  const ours = new Set(outcomes.filter(({ state }) => state !== 'unknown').map(({ text }) => text))
  return matches.map(({ text, type }, index) => ({
    token_hash: tokenHash(text),
    token_type: type,
    label: ours.has(index) ? 'true_positive' : 'false_positive',
  }))
}

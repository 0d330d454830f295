import { failureName } from '../domain/bugs.ts'
import type { EventLog } from '../domain/events.ts'
import { readScanningMatches, scanningHeaders, tokenHash, type ScanningMatch } from '../domain/secret-scanning.ts'
import { revokeLeakedKeys, type LeakedKeysNeeds } from './leaked-keys.ts'
import { ScanningKeysUnavailable, type Scanner } from './scanning-keys.ts'

/** Handled at once. Whoever sends more is asked to wait. */
const maxUnderWay = 16
const busyRetryMs = 5_000

export interface ScanningDesk {
  readonly scanner: Pick<Scanner, 'isAuthentic'>
  readonly leaks: LeakedKeysNeeds
  readonly log: EventLog
}

/**
 * Whether a token that was reported is a key that we gave out, in GitHub's words and with its digest (SHA-256, hex) in
 * place of the token, so that no answer carries a key.
 */
interface TokenLabel {
  readonly token_hash: string
  readonly token_type: string
  readonly label: 'true_positive' | 'false_positive'
}

/** What a report is answered with. `outcome` says why and may be shown to its sender. */
type ReportAnswer =
  | { readonly status: 200; readonly labels: readonly TokenLabel[] }
  | { readonly status: 400 | 403; readonly outcome: 'unreadable' | 'refused' }
  | { readonly status: 503; readonly outcome: 'busy' | 'try again'; readonly retryAfterMs: number }

/** Takes one report of the scanner: the body as it arrived, byte by byte. */
export type TakeScanningReport = (
  body: Uint8Array,
  headers: { get(name: string): string | null },
) => Promise<ReportAnswer>

/**
 * Takes the reports of GitHub's secret scanning (its partner programme). The signature over the raw body is checked
 * before anything of it is read; then every key of ours in it is revoked in the service's own name and its owner told.
 * The same report sent twice changes nothing the second time. Never throws.
 */
export function createReportTaker(desk: ScanningDesk): TakeScanningReport {
  let underWay = 0
  return async (body, headers) => {
    if (underWay >= maxUnderWay) return { status: 503, outcome: 'busy', retryAfterMs: busyRetryMs }
    underWay += 1
    try {
      const keyId = headers.get(scanningHeaders.keyId) ?? undefined
      const signature = headers.get(scanningHeaders.signature) ?? undefined
      if (!(await desk.scanner.isAuthentic({ body, keyId, signature }))) return { status: 403, outcome: 'refused' }
      const matches = readScanningMatches(body)
      return matches === undefined
        ? { status: 400, outcome: 'unreadable' }
        : { status: 200, labels: await handle(desk, matches) }
    } catch (error) {
      const isKeys = error instanceof ScanningKeysUnavailable
      if (!isKeys) desk.log({ event: 'store_failing', reason: failureName(error) })
      return { status: 503, outcome: 'try again', retryAfterMs: isKeys ? error.retryAfterMs : busyRetryMs }
    } finally {
      underWay -= 1
    }
  }
}

async function handle(desk: ScanningDesk, matches: readonly ScanningMatch[]): Promise<readonly TokenLabel[]> {
  const texts = matches.map(({ text, url }) => ({ text, foundAt: url }))
  const outcomes = await revokeLeakedKeys(desk.leaks, texts)
  const revoked = new Set(outcomes.filter(({ state }) => state === 'revoked').map(({ keyId }) => keyId)).size
  desk.log({ event: 'leak_report', reported: matches.length, revoked })
  const ours = new Set(outcomes.filter(({ state }) => state !== 'unknown').map(({ text }) => text))
  return matches.map(({ text, type }, index) => ({
    token_hash: tokenHash(text),
    token_type: type,
    label: ours.has(index) ? 'true_positive' : 'false_positive',
  }))
}

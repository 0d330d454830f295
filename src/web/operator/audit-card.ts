import { html } from 'hono/html'
import type { AuditReview } from '../../accounts/audit/audit-reviewer.ts'
import { breakReasons } from '../../domain/audit-chain.ts'
import type { Checkpoint } from '../../domain/checkpoint.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import { writeAgo, writeNumber } from '../components/time.ts'
import type { OperatorVisit } from '../http/visit.ts'

/** The state of the log: when it was last verified and signed, with buttons for both. */
export function auditCard(visit: OperatorVisit, entries: number, signed: Checkpoint | undefined): Html {
  const { consoleDeps, clock } = visit.deps
  const nowMs = clock.nowMs()
  return html`<section class="card">
    <h2>Integrity</h2>
    ${reviewLine(consoleDeps.audit.last, nowMs)}
    ${
      consoleDeps.audit.runningSinceMs === undefined
        ? ''
        : html`<p>
            A verification is running (started ${writeAgo(consoleDeps.audit.runningSinceMs, nowMs)}). Reload to see the
            result.
          </p>`
    }
    <p class="faint">
      ${writeNumber(entries)} entr${entries === 1 ? 'y' : 'ies'}.
      ${
        signed === undefined
          ? 'No entries are signed yet.'
          : html`Entry ${writeNumber(signed.sequence)} and all earlier ones were signed ${writeAgo(signed.atMs, nowMs)}.`
      }
      A checkpoint stored on another machine reveals any later truncation.
    </p>
    <div class="actions">
      <form method="post" action="/operator/audit/verify">${csrfInput(visit)}<button>Verify now</button></form>
      <form method="post" action="/operator/audit/checkpoint">
        ${csrfInput(visit)}<button class="secondary">Download a checkpoint</button>
      </form>
      <a class="button secondary" href="/operator/audit/log.jsonl" download>Download the log</a>
    </div>
  </section>`
}

/** The result of the last verification in one sentence. */
export function reviewLine(review: AuditReview | undefined, nowMs: number): Html {
  if (review === undefined) return html`<p>Not verified since the service started.</p>`
  const { verdict, atMs } = review
  const when = writeAgo(atMs, nowMs)
  if (verdict === 'failed')
    return html`<p class="problem">The log could not be verified because the database did not respond (${when}).</p>`
  if (verdict.state === 'broken')
    return html`<p class="problem">
      Broken at entry ${writeNumber(verdict.at.sequence)}: ${breakReasons[verdict.at.why]} (${when}). Earlier entries
      are intact. Preserve the database as it is, and compare it with a backup or an export.
    </p>`
  const entries = `${writeNumber(verdict.entries)} ${verdict.entries === 1 ? 'entry' : 'entries'}`
  if (verdict.state === 'unproven')
    return html`<p class="warning">
      The chain of ${entries} is valid, but no verifiable checkpoint proves that none are missing at the end (${when}).
    </p>`
  return html`<p>
    <span class="tag good">intact</span> ${entries}, proven through entry ${writeNumber(verdict.provenTo)} (verified
    ${when}).
  </p>`
}

import { html } from 'hono/html'
import type { AuditReview } from '../../accounts/audit-desk.ts'
import { breakReasons } from '../../domain/audit-chain.ts'
import type { Checkpoint } from '../../domain/checkpoint.ts'
import { csrfInput, type Html } from '../layout.ts'
import { writeAgo, writeNumber } from '../time.ts'
import type { OperatorVisit } from '../visit.ts'

/** How the log stands: when it was last verified and signed, and doing either now. */
export function auditCard(visit: OperatorVisit, entries: number, signed: Checkpoint | undefined): Html {
  const { desk, clock } = visit.parts
  const nowMs = clock.nowMs()
  return html`<section class="card">
    <h2>Does it hold?</h2>
    ${reviewLine(desk.audit.last, nowMs)}
    ${
      desk.audit.runningSinceMs === undefined
        ? ''
        : html`<p>
            A verification is under way since ${writeAgo(desk.audit.runningSinceMs, nowMs)}. Reload to see its end.
          </p>`
    }
    <p class="faint">
      ${writeNumber(entries)} entr${entries === 1 ? 'y' : 'ies'}.
      ${
        signed === undefined
          ? 'None is signed yet.'
          : html`Signed up to entry ${writeNumber(signed.sequence)}, ${writeAgo(signed.atMs, nowMs)}.`
      }
      A checkpoint that is kept on another machine shows every later cut.
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

/** What the last verification found, in one sentence. */
export function reviewLine(review: AuditReview | undefined, nowMs: number): Html {
  if (review === undefined) return html`<p>Not verified since the service started.</p>`
  const { verdict, atMs } = review
  const when = writeAgo(atMs, nowMs)
  if (verdict === 'failed')
    return html`<p class="problem">It could not be verified: the store did not answer (${when}).</p>`
  if (verdict.state === 'broken')
    return html`<p class="problem">
      Broken at entry ${writeNumber(verdict.at.sequence)}: ${breakReasons[verdict.at.why]} (${when}). Entries before it
      hold. Keep the database as it is, and compare it with a backup or an export.
    </p>`
  if (verdict.state === 'unproven')
    return html`<p class="warning">
      ${writeNumber(verdict.entries)} entries follow one from another; no checkpoint that can be checked proves their
      end (${when}).
    </p>`
  return html`<p>
    <span class="tag good">intact</span> ${writeNumber(verdict.entries)} entries, proven to entry
    ${writeNumber(verdict.provenTo)} (verified ${when}).
  </p>`
}

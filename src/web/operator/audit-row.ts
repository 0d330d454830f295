import { html } from 'hono/html'
import type { Actor, AuditEntry } from '../../domain/audit.ts'
import type { Html } from '../components/html.ts'
import { writeMinute } from '../components/time.ts'

/** Audit log entries; `emails` maps operator ids to addresses. */
export function auditRows(entries: readonly AuditEntry[], emails: ReadonlyMap<string, string>): Html {
  return html`<ul class="rows">
    ${entries.map((entry) => auditRow(entry, emails))}
  </ul>`
}

function auditRow({ sequence, atMs, actor, event }: AuditEntry, emails: ReadonlyMap<string, string>): Html {
  const { type, ...fields } = event
  return html`<li>
    <div>
      <strong>${type}</strong> <span class="faint">by ${writeActor(actor, emails)}</span><br />
      ${Object.entries(fields).map(
        ([name, value]) => html`<span class="faint">${wordOf(name)}</span> ${writeValue(name, value, emails)} `,
      )}
      <br /><span class="faint">${writeMinute(atMs)} · entry ${sequence}</span>
    </div>
  </li>`
}

/** A description of the actor. */
function writeActor(actor: Actor, emails: ReadonlyMap<string, string>): string {
  if (actor.kind === 'operator') return emails.get(actor.operatorId) ?? actor.operatorId
  if (actor.kind === 'session') return 'the account itself'
  if (actor.kind === 'token') return `the token ${actor.tokenId}`
  return actor.kind === 'cli' ? 'the command line' : 'the service'
}

/** Field names as words: `nextKeyId` becomes "next key". */
function wordOf(name: string): string {
  if (name === 'endsAtMs') return 'until'
  return name
    .replace(/Id$/, '')
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .trim()
}

function writeValue(name: string, value: string | number, emails: ReadonlyMap<string, string>): Html {
  if (typeof value === 'number') return name === 'endsAtMs' ? writeMinute(value) : html`${value}`
  if (name === 'accountId') return html`<a href="/operator/accounts/${value}"><code>${value}</code></a>`
  return html`<code>${emails.get(value) ?? value}</code>`
}

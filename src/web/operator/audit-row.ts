import { html } from 'hono/html'
import type { Actor, AuditEntry } from '../../domain/audit.ts'
import type { Html } from '../layout.ts'
import { writeMinute } from '../time.ts'

/** One entry of the audit log; `emails` are the operators', by their ids. */
export function auditRow({ sequence, atMs, actor, event }: AuditEntry, emails: ReadonlyMap<string, string>): Html {
  const { type, ...fields } = event
  return html`<li>
    <div>
      <strong>${type}</strong><br />
      ${Object.entries(fields).map(
        ([name, value]) => html`<span class="faint">${name}</span> ${fieldValue(name, value, emails)} `,
      )}
    </div>
    <span class="faint"
      >${writeMinute(atMs)} · ${writeActor(actor, emails)} ·
      <span title="Its number in the log">#${sequence}</span></span
    >
  </li>`
}

/** Who asked, in words. */
function writeActor(actor: Actor, emails: ReadonlyMap<string, string>): string {
  if (actor.kind === 'operator') return emails.get(actor.operatorId) ?? actor.operatorId
  if (actor.kind === 'session') return 'the account itself'
  return actor.kind === 'cli' ? 'command line' : 'the service'
}

function fieldValue(name: string, value: string | number, emails: ReadonlyMap<string, string>): Html {
  if (typeof value === 'number') return name === 'endsAtMs' ? writeMinute(value) : html`${value}`
  if (name === 'accountId') return html`<a href="/operator/accounts/${value}"><code>${value}</code></a>`
  return html`<code>${value}</code>${emails.has(value) ? html` (${emails.get(value)})` : ''}`
}

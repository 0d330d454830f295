import { html } from 'hono/html'
import type { UsageGroup } from '../../accounts/ports.ts'
import { writeUsd } from '../../domain/money.ts'
import type { Html } from './html.ts'
import type { Names } from './names.ts'
import { writeCount, writeNumber } from './time.ts'
import { costBy, type CostSum } from './usage-sums.ts'

/** Keys and models that are listed. */
const maxRows = 10

/** What requests cost, and what caching saved, by key and by model (contract 42.10). */
export function costTables(groups: readonly UsageGroup[], names: Names): Html {
  return html`${costTable('Cost by key', groups, ({ keyId }) => names.key(keyId))}
  ${costTable('Cost by model', groups, ({ backend }) => (backend === null ? 'none' : names.model(backend)))}`
}

/** The cost of all requests and what caching saved, as entries of a list of facts; empty if no cost is known. */
export function costFacts(cost: CostSum | undefined): Html | string {
  return cost === undefined
    ? ''
    : html`<dt>Cost at the providers</dt>
        <dd>${writeUsd(cost.amount)}</dd>
        <dt>Saved by caching</dt>
        <dd>${writeUsd(cost.saved)}</dd>`
}

const computed = 'Stated by the provider, or computed from usage.'

/** What the sum leaves out (contract 42.5, 42.8). */
export function costNote(cost: CostSum | undefined): string {
  if (cost === undefined) return 'The cost of these requests is unknown.'
  if (cost.unknown === 0) return computed
  return `${computed} The cost of ${writeCount(cost.unknown, 'request')} is unknown and not included.`
}

/** What the groups of each name cost, the most expensive first; `show` writes a name. */
export function costTable<Group extends Pick<UsageGroup, 'requests' | 'cost'>>(
  title: string,
  groups: readonly Group[],
  nameOf: (group: Group) => string,
  show: (name: string) => Html | string = (name) => name,
): Html {
  const all = costBy(groups, nameOf)
  return costSection(title, {
    of: 'Name',
    rows: all.slice(0, maxRows).map((row) => ({ ...row, head: html`<th scope="row">${show(row.name)}</th>` })),
    // A sum must not look complete if it is not.
    showsUnknown: all.some(({ count, cost }) => unknownOf(count, cost) > 0),
    note:
      all.length > maxRows
        ? html`<p class="faint">The ${maxRows} most expensive of ${writeNumber(all.length)}.</p>`
        : '',
  })
}

interface CostRows {
  /** What the rows are about: the title of the first column. */
  readonly of: string
  readonly rows: readonly { readonly head: Html; readonly count: number; readonly cost: CostSum | undefined }[]
  readonly showsUnknown: boolean
  readonly note?: Html | string
}

/** A table of costs, each with the number of requests. */
export function costSection(title: string, { of, rows, showsUnknown, note = '' }: CostRows): Html {
  return html`<section class="card">
    <h2>${title}</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="${title}">
      <table>
        <thead>
          <tr>
            <th scope="col">${of}</th>
            <th scope="col" class="number">Cost</th>
            <th scope="col" class="number">Saved by caching</th>
            <th scope="col" class="number">Requests</th>
            ${showsUnknown ? html`<th scope="col" class="number">Cost unknown</th>` : ''}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            ({ head, count, cost }) =>
              html`<tr>
                ${head}
                <td class="number">${cost === undefined ? 'unknown' : writeUsd(cost.amount)}</td>
                <td class="number">${cost === undefined ? 'unknown' : writeUsd(cost.saved)}</td>
                <td class="number">${writeNumber(count)}</td>
                ${showsUnknown ? html`<td class="number">${writeNumber(unknownOf(count, cost))}</td>` : ''}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${note}
  </section>`
}

function unknownOf(count: number, cost: CostSum | undefined): number {
  return cost === undefined ? count : cost.unknown
}

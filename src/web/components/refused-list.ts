import { html } from 'hono/html'
import { errorCatalog, type ErrorCode } from '../../domain/errors.ts'
import type { RefusedCount } from '../../domain/refused-requests.ts'
import { firstSentence } from '../docs/error-docs.ts'
import { errorHelp } from '../docs/error-help.ts'
import type { Html } from './html.ts'
import { inlineHtml } from './markdown-inline.ts'
import type { Names } from './names.ts'
import { writeMinute, writeNumber } from './time.ts'

/** Maximum number of errors shown, those of the latest rejected requests. */
const maxShown = 10

/** An account's rejected requests by error; `when` completes the sentence, such as `in the last 7 days`. */
export function refusedList(
  refused: readonly RefusedCount[],
  names: Names,
  when: string | Html,
  isOpen: boolean,
): Html | '' {
  if (refused.length === 0) return ''
  const sum = refused.reduce((total, { requests }) => total + requests, 0)
  const more = refused.length - maxShown
  return html`<details ${isOpen ? 'open' : ''}>
    <summary>${writeNumber(sum)} ${sum === 1 ? 'request was' : 'requests were'} rejected ${when}: see why</summary>
    <div class="panel">
      <p>
        These requests did not reach a model and did not count toward your quota. For each error, we store only how many
        there were, and the time, key, and ID of the last one.
      </p>
      <ul class="rows">
        ${refused.slice(0, maxShown).map((count) => row(count, names))}
      </ul>
      ${
        more > 0
          ? html`<p class="faint">
              To see ${more} more ${more === 1 ? 'error' : 'errors'}, <a href="/account/data">download your data</a>.
            </p>`
          : ''
      }
    </div>
  </details>`
}

function row({ code, requests, lastAtMs, lastKeyId, lastRequestId }: RefusedCount, names: Names): Html {
  const help = isErrorCode(code) ? errorHelp[code] : undefined
  return html`<li>
    <div>
      <a href="/docs/errors/${code}">${code}</a>
      <span class="tag bad">${writeNumber(requests)} ${requests === 1 ? 'time' : 'times'}</span><br />
      ${help === undefined ? '' : html`${inlineHtml(firstSentence(help.why), () => undefined)}<br />`}
      <span class="faint"
        >Last: ${writeMinute(lastAtMs)} · ${names.key(lastKeyId)} ·
        ${lastRequestId}${help?.at === undefined ? '' : html` · <a href="${help.at.path}">${help.at.name}</a>`}</span
      >
    </div>
  </li>`
}

/** Another version of the service may have counted errors that this one does not know. */
function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorCatalog, code)
}

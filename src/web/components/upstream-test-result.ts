import { html } from 'hono/html'
import { describeUpstreamTest } from '../../domain/upstream-test-text.ts'
import type { UpstreamTest } from '../../domain/upstream.ts'
import type { Html } from './html.ts'

/** The result of a provider test, shown below the provider. */
export function upstreamTestResult(test: UpstreamTest): Html {
  const { outcome, status, ms, reason } = test
  const { what, next } = describeUpstreamTest(test)
  const isGood = outcome === 'answered'
  return html`<div role="status">
    <p>
      <span class="tag ${isGood ? 'good' : 'bad'}">${isGood ? 'works' : 'failed'}</span>
      ${what} ${next} <span class="faint">${status === undefined ? '' : `HTTP ${status}, `}${Math.round(ms)} ms</span>
    </p>
    ${reason === undefined ? '' : html`<p class="faint">Message from the provider: ${reason}</p>`}
  </div>`
}

import { html } from 'hono/html'
import { shownName, type CallRecord, type FusionRecord } from '../../domain/fusion-record.ts'
import { writeUsd } from '../../domain/money.ts'
import type { Html } from './html.ts'
import type { Names } from './names.ts'
import { writeMs } from './request-line.ts'
import { writeNumber } from './time.ts'

/** The details of one fusion: verdict, degradations, and the result of each call. */
export function fusionCard(fusion: FusionRecord, names: Names): Html {
  const { mode, errorCode, answered, asked, quorum, preset, isSelfPanel, degraded, dropOuts } = fusion
  return html`<section class="card">
    <h2>Fusion: ${mode === undefined ? (errorCode ?? 'unanswered') : shownName(mode)}</h2>
    <dl class="facts">
      <dt>Models asked</dt>
      <dd>
        ${answered} of ${asked} answered, quorum ${quorum}, preset
        ${preset}${isSelfPanel ? ', one model family called more than once' : ''}
      </dd>
      <dt>Verdict</dt>
      <dd>${verdictOf(fusion)}</dd>
      <dt>Phases</dt>
      <dd>panel ${writeMs(fusion.panelMs)}, judge ${writeMs(fusion.judgeMs)}, total ${writeMs(fusion.totalMs)}</dd>
      <dt>Cost</dt>
      <dd>${fusion.costUsd === undefined ? 'unknown: a price is unknown' : writeUsd(fusion.costUsd)}</dd>
      <dt>Problems</dt>
      <dd>${degraded.length === 0 ? 'none' : degraded.map(shownName).join(', ')}</dd>
      <dt>Dropped</dt>
      <dd>
        ${
          dropOuts.length === 0
            ? 'none'
            : dropOuts.map(({ member, why }) => `${names.backend(member)} (${shownName(why)})`).join(', ')
        }
      </dd>
      <dt>Prompt versions</dt>
      <dd>${Object.values(fusion.prompts).join(', ')}</dd>
    </dl>
    <div class="scroll" tabindex="0" role="region" aria-label="Calls of the fusion">
      <table>
        <thead>
          <tr>
            <th scope="col">Role</th>
            <th scope="col">Backend</th>
            <th scope="col">Result</th>
            <th scope="col" class="number">Time</th>
            <th scope="col" class="number">Input tokens</th>
            <th scope="col" class="number">Output tokens</th>
            <th scope="col" class="number">Cost</th>
          </tr>
        </thead>
        <tbody>
          ${fusion.calls.map((call) => callRow(call, names))}
        </tbody>
      </table>
    </div>
  </section>`
}

function verdictOf({ verdict, answerType, disagreements = 0 }: FusionRecord): string {
  if (verdict === undefined) return 'none'
  const differing = disagreements === 1 ? '1 disagreement' : `${disagreements} disagreements`
  return `${verdict}, ${differing}${answerType === undefined ? '' : `, answer type ${answerType}`}`
}

function callRow({ role, member, status, ms, usage, costUsd }: CallRecord, names: Names): Html {
  const about = usage?.source === 'estimated' ? '~' : ''
  const tokens = (count: number | undefined): string => (count === undefined ? '–' : `${about}${writeNumber(count)}`)
  return html`<tr>
    <th scope="row">${shownName(role)}</th>
    <td>${names.backend(member)}</td>
    <td><span class="tag ${status === 'answered' ? 'good' : 'bad'}">${shownName(status)}</span></td>
    <td class="number">${writeMs(ms)}</td>
    <td class="number">${tokens(usage?.inputTokens)}</td>
    <td class="number">${tokens(usage?.outputTokens)}</td>
    <td class="number">${costUsd === undefined ? '–' : writeUsd(costUsd)}</td>
  </tr>`
}

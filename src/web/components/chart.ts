import { html } from 'hono/html'
import type { Html } from './html.ts'
import { writeCount, writeNumber } from './time.ts'

/** SVG units. The drawing is stretched to the page width, so it contains no text. */
const slotWidth = 10
const gap = 2
const height = 100
/** Keeps a single request among thousands visible. */
const leastHeight = 1.5

/** One day of a chart. */
export interface DayBar {
  /** `2026-11-21` */
  readonly day: string
  readonly answered: number
  readonly failed: number
}

/** Requests by day as an SVG, with a text alternative and a table. */
export function dayChart(bars: readonly DayBar[], name: string): Html {
  const top = Math.max(1, ...bars.map(({ answered, failed }) => answered + failed))
  const total = bars.reduce((sum, { answered, failed }) => sum + answered + failed, 0)
  const busiest = bars.find(({ answered, failed }) => answered + failed === top)
  const sentence = `${writeCount(total, 'request')} in ${writeCount(bars.length, 'day')}, at most ${writeNumber(top)} on ${busiest?.day ?? 'none'}.`
  return html`<figure class="chart">
    <figcaption>
      <span>${writeNumber(top)}</span>
      <span><span class="mark"></span> answered <span class="mark failed"></span> with an error</span>
    </figcaption>
    <svg
      viewBox="0 0 ${bars.length * slotWidth} ${height}"
      preserveAspectRatio="none"
      role="img"
      aria-label="${name}: ${sentence}"
    >
      ${bars.map((bar, index) => drawDay(bar, index, top))}
    </svg>
    <p class="first-last"><span>${bars[0]?.day ?? ''}</span><span>${bars.at(-1)?.day ?? ''}</span></p>
    <details>
      <summary>As a table<span class="unseen">: ${name}</span></summary>
      <div class="scroll" tabindex="0" role="region" aria-label="${name}">
        <table>
          <thead>
            <tr>
              <th scope="col">Day</th>
              <th scope="col" class="number">Answered</th>
              <th scope="col" class="number">With an error</th>
            </tr>
          </thead>
          <tbody>
            ${bars.map(
              ({ day, answered, failed }) =>
                html`<tr>
                  <th scope="row"><a href="/activity?day=${day}">${day}</a></th>
                  <td class="number">${writeNumber(answered)}</td>
                  <td class="number">${writeNumber(failed)}</td>
                </tr>`,
            )}
          </tbody>
        </table>
      </div>
    </details>
  </figure>`
}

function drawDay({ day, answered, failed }: DayBar, index: number, top: number): Html | '' {
  const tall = (count: number): number => (count === 0 ? 0 : Math.max(leastHeight, (count / top) * height))
  const failedHeight = tall(failed)
  const answeredHeight = Math.min(tall(answered), height - failedHeight)
  const x = index * slotWidth + gap / 2
  const width = slotWidth - gap
  if (answered + failed === 0) return ''
  return html`<g>
    <title>${day}: ${writeNumber(answered)} answered, ${writeNumber(failed)} with an error</title>
    ${rect('', x, height - answeredHeight, width, answeredHeight)}
    ${rect('failed', x, height - answeredHeight - failedHeight, width, failedHeight)}
  </g>`
}

function rect(kind: string, x: number, y: number, width: number, tall: number): Html | '' {
  if (tall === 0) return ''
  return html`<rect class="${kind}" x="${x}" y="${y.toFixed(2)}" width="${width}" height="${tall.toFixed(2)}" />`
}

/** A row of a share table. */
export interface Share {
  readonly name: string | Html
  readonly count: number
}

/** A table of request counts with a bar in each row. */
export function shareTable(caption: string, shares: readonly Share[], kind: '' | 'failed' = ''): Html {
  const top = Math.max(1, ...shares.map(({ count }) => count))
  return html`<table class="shares">
    <caption>
      ${caption}
    </caption>
    <thead class="unseen">
      <tr>
        <th scope="col">Name</th>
        <th scope="col">Requests</th>
      </tr>
    </thead>
    <tbody>
      ${shares.map(
        ({ name, count }) =>
          html`<tr>
            <th scope="row">
              ${name}
              <svg class="share" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                <rect class="${kind}" width="${((count / top) * 100).toFixed(2)}" height="4" />
              </svg>
            </th>
            <td class="number">${writeNumber(count)}</td>
          </tr>`,
      )}
    </tbody>
  </table>`
}

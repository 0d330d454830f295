import { html } from 'hono/html'
import type { Impact } from '../../domain/incidents.ts'
import { indicatorWords, type ComponentState } from '../../domain/service-status.ts'
import type { WebDeps } from '../web-deps.ts'
import type { Html } from './html.ts'

const tones: Readonly<Record<Impact, 'good' | 'warn' | 'bad'>> = {
  none: 'good',
  minor: 'warn',
  major: 'bad',
  critical: 'bad',
}
const stateTones: Readonly<Record<ComponentState, 'good' | 'warn' | 'bad'>> = {
  operational: 'good',
  degraded: 'warn',
  down: 'bad',
  maintenance: 'warn',
}
const stateWords: Readonly<Record<ComponentState, string>> = {
  operational: 'operational',
  degraded: 'degraded',
  down: 'down',
  maintenance: 'under maintenance',
}

/** The service status as a colored dot and a sentence that links to the status page. */
export async function statusDot({ status }: Pick<WebDeps, 'status'>): Promise<Html> {
  const { indicator } = await status.read()
  return html`<a class="dot ${tones[indicator]}" href="/status">${indicatorWords[indicator]}</a>`
}

/** The state of one component as a tag. */
export function stateTag(state: ComponentState): Html {
  return html`<span class="tag ${stateTones[state]}">${stateWords[state]}</span>`
}

/** The CSS class for an impact. */
export function toneOf(indicator: Impact): string {
  return tones[indicator]
}

import { html } from 'hono/html'
import type { Impact } from '../domain/incidents.ts'
import { indicatorWords, type ComponentState } from '../domain/service-status.ts'
import type { Html } from './layout.ts'
import type { WebParts } from './web-parts.ts'

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
  operational: 'works',
  degraded: 'degraded',
  down: 'does not work',
  maintenance: 'taken out for now',
}

/** How the service does, in a dot and a sentence that leads to the page. */
export async function statusDot({ status }: Pick<WebParts, 'status'>): Promise<Html> {
  const { indicator } = await status.read()
  return html`<a class="dot ${tones[indicator]}" href="/status">${indicatorWords[indicator]}</a>`
}

/** How one part does, as a mark behind its name. */
export function stateTag(state: ComponentState): Html {
  return html`<span class="tag ${stateTones[state]}">${stateWords[state]}</span>`
}

/** The words and the tone of the whole. */
export function toneOf(indicator: Impact): string {
  return tones[indicator]
}

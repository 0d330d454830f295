// DOM helpers for the playground. Text is never parsed as HTML.

/** @typedef {Node | string | undefined} Child */

/**
 * The element with this id, of this class.
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @param {new () => T} [kind]
 * @returns {T}
 */
export function at(id, kind) {
  const element = document.getElementById(id)
  if (!(element instanceof (kind ?? HTMLElement))) throw new Error(`no such element: ${id}`)
  return /** @type {T} */ (element)
}

/**
 * Creates an element with attributes and children. `on` is its click handler; empty children are skipped.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string | boolean | undefined | (() => void)>} attributes
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener('click', value)
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value)
  }
  for (const child of children) if (child !== undefined && child !== '') element.append(child)
  return element
}

/** @param {Child[]} text */
export const empty = (...text) => make('p', { class: 'empty' }, ...text)
/** @param {number} value */
export const number = (value) => value.toLocaleString('en-US')
/** @param {number} value @param {string} one The singular. */
export const count = (value, one) => `${number(value)} ${one}${value === 1 ? '' : 's'}`
/** @param {number} ms */
export const time = (ms) => (ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`)
/** Names of results, modes, and roles that are not words that people use.
 * @type {Readonly<Record<string, string>>} */
const shownNames = {
  cancelled: 'canceled',
  cut: 'aborted',
  unsayable: 'not expressible',
  synthesised: 'synthesized',
  medoid: 'most typical answer',
  swap: 'second judgment',
  outer: 'answering model',
  refill: 'replacement',
  second_look_failed: 'second judgment failed',
}
/** @param {string | undefined} name */
export const plain = (name) => shownNames[name ?? ''] ?? (name ?? 'unknown').replaceAll('_', ' ')
/** @param {string} name */
export const tag = (name) => make('span', { class: `tag ${name === 'answered' ? 'good' : 'bad'}` }, plain(name))

/**
 * A list of names and values without undefined values.
 * @param {(readonly [name: string, value: Child])[]} rows
 */
export function facts(rows) {
  const known = rows.filter(([, value]) => value !== undefined && value !== '')
  return make(
    'dl',
    { class: 'facts' },
    ...known.flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]),
  )
}

/**
 * A table in a scrollable region.
 * @param {string} label
 * @param {Child[]} heads
 * @param {(Child | number)[][]} rows
 */
export function table(label, heads, rows) {
  /** @param {Child | number} value @param {number} index */
  const cell = (value, index) =>
    make(
      index === 0 ? 'th' : 'td',
      index === 0 ? { scope: 'row' } : {},
      typeof value === 'number' ? String(value) : (value ?? '–'),
    )
  const head = make('tr', {}, ...heads.map((name) => make('th', { scope: 'col' }, name)))
  const body = rows.map((row) => make('tr', {}, ...row.map(cell)))
  const region = { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label }
  return make('div', region, make('table', {}, make('thead', {}, head), make('tbody', {}, ...body)))
}

/**
 * A text with its URLs as links.
 * @param {string} text
 */
export function linked(text) {
  const parts = text.split(/(https?:\/\/[^\s"'<>]+[^\s"'<>.,;:)])/)
  return parts.map((part, index) => (index % 2 === 1 ? make('a', { href: part }, part) : part))
}

/** Indents JSON; returns other text unchanged. */
export function pretty(text = '') {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

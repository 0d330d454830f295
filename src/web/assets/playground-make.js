// DOM helpers for the playground. Text is never parsed as HTML.

/** The element with this id. */
export const at = (id) => document.getElementById(id)

/** Creates an element with attributes and children. `on` is its click handler; empty children are skipped. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') element.addEventListener('click', value)
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value)
  }
  element.append(...children.filter((child) => child !== undefined && child !== ''))
  return element
}

export const empty = (...text) => make('p', { class: 'empty' }, ...text)
export const number = (value) => value.toLocaleString('en-GB')
export const count = (value, one) => `${number(value)} ${one}${value === 1 ? '' : 's'}`
export const time = (ms) => (ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`)
export const plain = (name) => String(name ?? 'unknown').replaceAll('_', ' ')
export const tag = (name) => make('span', { class: `tag ${name === 'answered' ? 'good' : 'bad'}` }, plain(name))

/** A list of names and values without undefined values. */
export function facts(rows) {
  const known = rows.filter(([, value]) => value !== undefined && value !== '')
  return make(
    'dl',
    { class: 'facts' },
    ...known.flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]),
  )
}

/** A table in a scrollable region. */
export function table(label, heads, rows) {
  const cell = (value, index) => make(index === 0 ? 'th' : 'td', index === 0 ? { scope: 'row' } : {}, value ?? '–')
  const head = make('tr', {}, ...heads.map((name) => make('th', { scope: 'col' }, name)))
  const body = rows.map((row) => make('tr', {}, ...row.map(cell)))
  const region = { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label }
  return make('div', region, make('table', {}, make('thead', {}, head), make('tbody', {}, ...body)))
}

/** A text with its URLs as links. */
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

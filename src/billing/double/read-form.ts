/** A value of a form: a text, or what brackets in its names built of further values. */
export type FormValue = string | { [name: string]: FormValue }
export type Form = Readonly<Record<string, FormValue>>

const maxDepth = 6
const maxFields = 500

/** Reads what Stripe's library sends, `a[b][0][c]=d`, as nested objects; undefined where it is no such form. */
export function readForm(text: string): Form | undefined {
  const form: Record<string, FormValue> = Object.create(null) as Record<string, FormValue>
  let count = 0
  for (const [name, value] of new URLSearchParams(text)) {
    const path = Array.from(name.matchAll(/^([^[\]]+)|\[([^[\]]*)\]/g), (match) => match[1] ?? match[2] ?? '')
    if (++count > maxFields || path.length === 0 || path.length > maxDepth) return undefined
    let place = form
    for (const step of path.slice(0, -1)) {
      const inner = (place[step] ??= Object.create(null) as Record<string, FormValue>)
      if (typeof inner === 'string') return undefined
      place = inner
    }
    place[path.at(-1)!] = value
  }
  return form
}

/** A text in a form; undefined where there is none. */
export function textIn(form: FormValue | undefined, ...path: readonly string[]): string | undefined {
  let value = form
  for (const step of path) value = typeof value === 'object' ? value[step] : undefined
  return typeof value === 'string' ? value : undefined
}

/** A form value: a text, or nested values written with brackets in their names. */
export type FormValue = string | { [name: string]: FormValue }
export type Form = Readonly<Record<string, FormValue>>

const maxDepth = 6
const maxFields = 500

/** Parses the form encoding of Stripe's library, `a[b][0][c]=d`, into nested objects; undefined if it is malformed. */
export function readForm(text: string): Form | undefined {
  const form: Record<string, FormValue> = Object.create(null) as Record<string, FormValue>
  let count = 0
  for (const [name, value] of new URLSearchParams(text)) {
    const path = Array.from(name.matchAll(/^([^[\]]+)|\[([^[\]]*)\]/g), (match) => match[1] ?? match[2] ?? '')
    if (++count > maxFields || path.length === 0 || path.length > maxDepth) return undefined
    let target = form
    for (const step of path.slice(0, -1)) {
      const inner = (target[step] ??= Object.create(null) as Record<string, FormValue>)
      if (typeof inner === 'string') return undefined
      target = inner
    }
    target[path.at(-1)!] = value
  }
  return form
}

/** A text at a path in a form; undefined if there is none. */
export function textIn(form: FormValue | undefined, ...path: readonly string[]): string | undefined {
  let value = form
  for (const step of path) value = typeof value === 'object' ? value[step] : undefined
  return typeof value === 'string' ? value : undefined
}

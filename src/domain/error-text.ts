import { errorCatalog, type ServiceError } from './errors.ts'
import type { Links } from './links.ts'

/** The longest message that a caller is shown (contract 4.2). */
const maxMessageChars = 240

const placeholder = /\{(\w+)\}/g

/** What the caller reads: what happened, what to do, and the one right link (contract 4.2). */
export function errorMessage(error: ServiceError, links: Links): string {
  const { message, action } = error.entry
  const words = { ...error.facts.words, status: error.facts.status ?? '' }
  const text = message.replace(placeholder, (_, name: string) => String(words[name as keyof typeof words] ?? ''))
  if (action === undefined) return shorten(text, maxMessageChars)
  // A link ends with a space, so that terminals do not take what follows into it.
  const link = ` ${action === 'docsUrl' ? `${links.docsUrl}/errors/${error.code}` : links[action]} `
  return (shorten(text, maxMessageChars - link.length) + link).trimEnd()
}

function shorten(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, Math.max(0, maxChars - 1))}…`
}

/** Every code of the catalogue, for the pages and the tests that go through all of them. */
export const errorCodes = Object.keys(errorCatalog) as readonly (keyof typeof errorCatalog)[]

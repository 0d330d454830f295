import { counted } from '../runtime/counted.ts'
import { errorCatalog, type ServiceError } from './errors.ts'
import type { Links } from './links.ts'

/** The longest message that clients receive, in characters (contract 4.2, 30.17). */
const maxMessageChars = 240

/** `{name}`, or `{name:noun}` for a number with its noun. */
const placeholder = /\{(\w+)(?::([\w ]+))?\}/g

/** The message of an error: what happened, what to do, and the link to the page that helps, if there is one (contract 4.2). */
export function errorMessage(error: ServiceError, links: Links): string {
  const { message } = error.entry
  const { words: given, status = '', retryAfterSeconds: seconds = '', action = error.entry.action } = error.facts
  const words = { seconds, ...given, status }
  const text = message.replace(placeholder, (_, name: string, noun: string | undefined) => {
    const value = words[name as keyof typeof words] ?? ''
    return noun === undefined ? String(value) : counted(Number(value), noun)
  })
  if (action === undefined) return shorten(text, maxMessageChars)
  // A space ends the link, so that terminals do not extend it over the text that follows.
  const link = ` ${action === 'docsUrl' ? `${links.docsUrl}/errors/${error.code}` : links[action]} `
  return (shorten(text, maxMessageChars - link.length) + link).trimEnd()
}

function shorten(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, Math.max(0, maxChars - 1))}…`
}

/** Every code in the catalog. */
export const errorCodes = Object.keys(errorCatalog) as readonly (keyof typeof errorCatalog)[]

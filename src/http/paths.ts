import type { IncomingMessage } from 'node:http'
import { clientFormatIds } from '../domain/format-id.ts'
import type { ClientConventions } from '../formats/client-conventions.ts'
import { formatById } from '../formats/formats.ts'
import { openaiConventions } from '../formats/openai/client-conventions.ts'

/** Path prefix of single models. */
const modelsPrefix = '/v1/models/'
/** `/v1`, repeated as often as a client has added it. */
const versions = /^(?:\/v1(?=\/))*/

/**
 * The client conventions for a path: those of a format at its path, below it, or at its path without `/v1`; OpenAI's
 * everywhere else.
 */
export function conventionsAt(path: string): ClientConventions {
  const rest = path.replace(versions, '')
  for (const id of clientFormatIds) {
    const { path: own, conventions } = formatById(id)
    if (rest === own || rest.startsWith(`${own}/`)) return conventions
  }
  return openaiConventions
}

/** The base URL that a client should have used, given the unknown path that it requested. */
export function baseUrlFor(path: string, baseUrl: string): string {
  return path.startsWith('/v1/v1/') && conventionsAt(path).addVersion ? new URL(baseUrl).origin : baseUrl
}

/** The path of a request, without its query. For an absolute target (`http://host/path`), only the path. */
export function pathOf({ url = '' }: IncomingMessage): string {
  const from = url.startsWith('/') ? 0 : pathStart(url)
  const query = url.indexOf('?', from)
  const path = url.slice(from, query < 0 ? url.length : query)
  return path === '' && from > 0 ? '/' : path
}

/**
 * Where a target's path starts; its end if it is absolute and has no path. A target with a password has no path at
 * all (RFC 9110, 4.2.4).
 */
function pathStart(url: string): number {
  const [origin] = /^https?:\/\/[^/?@]*(?=[/?]|$)/i.exec(url) ?? ['']
  return origin.length
}

/** Whether the path is that of a single model. */
export function isModelPath(path: string): boolean {
  return path.startsWith(modelsPrefix) && path.length > modelsPrefix.length
}

/** The name after `/v1/models/`; its slash may be percent-encoded. A value that cannot be decoded is not a name. */
export function modelNameOf(path: string): string {
  const name = path.slice(modelsPrefix.length)
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

import type { IncomingMessage } from 'node:http'
import { clientFormatIds } from '../domain/format-id.ts'
import { formatById } from '../formats/formats.ts'
import type { ClientManners } from '../formats/manners.ts'
import { openaiManners } from '../formats/openai/manners.ts'

/** Where single models are found. */
const modelsPrefix = '/v1/models/'
/** `/v1`, as often as a client has put it there. */
const versions = /^(?:\/v1(?=\/))*/

/**
 * How whoever asks at this path expects to be spoken to: at a format's path, below it, and where it would be but for
 * `/v1`, as that format's clients; anywhere else as the compatible API.
 */
export function mannersAt(path: string): ClientManners {
  const rest = path.replace(versions, '')
  for (const id of clientFormatIds) {
    const { path: own, manners } = formatById(id)
    if (rest === own || rest.startsWith(`${own}/`)) return manners
  }
  return openaiManners
}

/** The base URL that would have been right for the client that asked at this path, where nothing is served. */
export function baseUrlFor(path: string, baseUrl: string): string {
  return path.startsWith('/v1/v1/') && mannersAt(path).addVersion ? new URL(baseUrl).origin : baseUrl
}

/** The path of a request, without its query. Of an absolute target (`http://host/path`) only the path counts. */
export function pathOf({ url = '' }: IncomingMessage): string {
  const from = url.startsWith('/') ? 0 : pathStart(url)
  const query = url.indexOf('?', from)
  const path = url.slice(from, query < 0 ? url.length : query)
  return path === '' && from > 0 ? '/' : path
}

/** Where the path of a target begins; its end where it is absolute and has none. A target with a password in it is no path at all (RFC 9110, 4.2.4). */
function pathStart(url: string): number {
  const [origin] = /^https?:\/\/[^/?@]*(?=[/?]|$)/i.exec(url) ?? ['']
  return origin.length
}

/** Whether the path is that of a single model. */
export function isModelPath(path: string): boolean {
  return path.startsWith(modelsPrefix) && path.length > modelsPrefix.length
}

/** The name behind `/v1/models/`: its slash may be encoded or not. What cannot be decoded is no name of ours. */
export function modelNameOf(path: string): string {
  const name = path.slice(modelsPrefix.length)
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

import { withoutEndSlashes } from '../../runtime/end-slashes.ts'

/** The endpoint of one format: `https://host:port`, and the path with its query. */
export interface Endpoint {
  readonly origin: string
  readonly path: string
}

const longestUrl = 2048

/** Why a base URL is invalid, as a full sentence; undefined if it is valid. */
export function baseUrlProblem(baseUrl: string): string | undefined {
  if (baseUrl.length > longestUrl) return `The base URL must have at most ${longestUrl} characters.`
  if (!URL.canParse(baseUrl)) return 'The base URL is not valid. Example: https://api.example.com/v1.'
  const url = new URL(baseUrl)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'The base URL must begin with https:// or http://.'
  if (url.username !== '' || url.password !== '') return 'The base URL must not contain a user or a password.'
  if (url.hash !== '') return 'The base URL must not contain a fragment (#).'
  return undefined
}

/**
 * Appends a format's `upstreamPath` to a base URL; the queries of both, such as `?api-version=…`, are kept. @throws
 * TypeError if `baseUrlProblem` reports a problem
 */
export function endpointOf(baseUrl: string, upstreamPath: string): Endpoint {
  const problem = baseUrlProblem(baseUrl)
  if (problem !== undefined) throw new TypeError(problem)
  const url = new URL(baseUrl)
  const [path = '', query] = upstreamPath.split('?')
  const search = query === undefined ? url.search : `${url.search === '' ? '?' : `${url.search}&`}${query}`
  return { origin: url.origin, path: withoutEndSlashes(url.pathname) + path + search }
}

import { withoutEndSlashes } from '../domain/end-slashes.ts'

/** Where requests of one format go: `https://host:port` and the path with its query. */
export interface Endpoint {
  readonly origin: string
  readonly path: string
}

const longestUrl = 2048

/** What is wrong with a base URL, as a full sentence; undefined where nothing is. */
export function baseUrlProblem(baseUrl: string): string | undefined {
  if (baseUrl.length > longestUrl) return `A base URL has at most ${longestUrl} characters.`
  if (!URL.canParse(baseUrl)) return 'The base URL is not a URL; it looks like https://api.example.com/v1.'
  const url = new URL(baseUrl)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'The base URL must begin with https:// or http://.'
  if (url.username !== '' || url.password !== '') return 'The base URL must not contain a user or a password.'
  if (url.hash !== '') return 'The base URL must not contain a fragment (#).'
  return undefined
}

/**
 * The endpoint below a base URL that `upstreamPath` of a format names; queries of both, such as `?api-version=…`, are
 * kept. @throws TypeError where `baseUrlProblem` names one
 */
export function endpointOf(baseUrl: string, upstreamPath: string): Endpoint {
  const problem = baseUrlProblem(baseUrl)
  if (problem !== undefined) throw new TypeError(problem)
  const url = new URL(baseUrl)
  const [path = '', query] = upstreamPath.split('?')
  const search = query === undefined ? url.search : `${url.search === '' ? '?' : `${url.search}&`}${query}`
  return { origin: url.origin, path: withoutEndSlashes(url.pathname) + path + search }
}

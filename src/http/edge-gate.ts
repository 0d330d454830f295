import { ServiceError } from '../domain/errors.ts'

/**
 * How libraries name themselves when the program that uses them says nothing: such a client cannot be told from any
 * other, and cannot be written to when it misbehaves (spec 5.6). Names of SDKs, of tools that people type and of runtimes pass.
 */
const bareLibraries =
  /^(python-requests|python-urllib|python-httpx|aiohttp|go-http-client|java|java-http-client|apache-httpclient|okhttp|libwww-perl|lwp-request|ruby|guzzlehttp|axios|got|node-fetch|reqwest|hyper|dart|scrapy|wget|mozilla\/5\.0$)(\/|\s|$)/i

/** Lets a request through by its User-Agent. @throws ServiceError `1010` */
export function passEdgeGate(userAgent: string | undefined): void {
  if (userAgent === undefined || userAgent.trim() === '' || bareLibraries.test(userAgent.trim()))
    throw new ServiceError('1010')
}

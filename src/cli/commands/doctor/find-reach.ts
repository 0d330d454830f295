import type { NoAnswer } from './ask.ts'
import type { Finding, Wording } from './finding.ts'
import type { Observations, Subject } from './inspect-service.ts'
import { isOurs, apiErrorOf, shown } from './read-answer.ts'

/** The statuses that proxies return if they cannot reach their backend. */
const cannotReach = [502, 503, 504]

/** Checks whether requests reach the service at all: the URL, the network, and proxies. */
export function findReach(subject: Subject, sight: Observations, reporter: Wording): Finding | undefined {
  const { models, elsewhere, catalog } = sight
  const given = new URL(subject.baseUrl)
  if (elsewhere !== undefined) return otherUrl(given, new URL(elsewhere))
  if (models.kind === 'silence') return silence(given, models, reporter)
  if (isOurs(models)) {
    const apiError = apiErrorOf(models)
    if (apiError?.code === 'not_found')
      return finding('url_path', `${subject.baseUrl} is not the base URL of this service`, apiError.message)
    if (apiError !== undefined || models.status === 200) return undefined
    const again = `look at the response: curl -i ${subject.baseUrl}/models`
    return finding('unexpected', `${subject.baseUrl} answers ${models.status} without an explanation`, again)
  }
  if (cannotReach.includes(models.status))
    return finding(
      'proxy_unreached',
      `a proxy at ${given.host} answers ${models.status}: it cannot reach the service`,
      `start the service, or correct its address in the proxy: ${reporter.command('start')}`,
    )
  const location = models.headers.location
  if (models.status >= 300 && models.status < 400 && typeof location === 'string') {
    const target = shown(location.replace(/\/models\/?$/, ''))
    return finding(
      'url_redirect',
      `${subject.baseUrl} redirects to another address`,
      `use that address: --url ${target}`,
    )
  }
  if (isOurs(catalog))
    return finding(
      'proxy_blocks',
      `the service is running, but a proxy in front of it answers ${models.status} for ${given.pathname}`,
      `make the proxy forward ${given.pathname}/ to the service unchanged`,
    )
  const type = shown(models.headers['content-type'] ?? 'nothing').split(';')[0]
  return finding(
    'not_svc_router',
    `the server at ${subject.baseUrl} is not svc-router (status ${models.status}, ${type})`,
    reporter.isOwn
      ? `stop the other program or choose another port: ${reporter.command('start --port 8788')}`
      : 'use the base URL that svc-router prints when it starts: --url https://HOST/v1',
  )
}

function otherUrl(given: URL, right: URL): Finding {
  const fix = `use --url ${right.href}`
  if (given.protocol !== right.protocol)
    return finding(
      'url_scheme',
      `the service at ${right.host} uses ${right.protocol.slice(0, -1)}, not ${given.protocol.slice(0, -1)}`,
      fix,
    )
  return finding(
    'url_path',
    `the base URL of the service ends in /v1, and ${given.href.replace(/\/$/, '')} does not`,
    fix,
  )
}

function silence({ host, hostname, protocol, port }: URL, { reason }: NoAnswer, reporter: Wording): Finding {
  switch (reason) {
    case 'refused':
      return reporter.isOwn
        ? finding('refused', `svc-router is not running: nothing listens on ${host}`, reporter.command('start'))
        : finding(
            'refused',
            `nothing listens on ${host}`,
            `start the service there, or correct the port: --url ${protocol}//${hostname}:PORT/v1`,
          )
    case 'unresolved':
      return finding(
        'unresolved',
        `the host ${hostname} does not resolve`,
        'correct the host in the URL, or your DNS: --url https://HOST/v1',
      )
    case 'unreachable':
      return finding('unreachable', `${host} cannot be reached from here`, `check the network: ping ${hostname}`)
    case 'timeout':
      return finding(
        'timeout',
        `${host} did not answer in time`,
        `find out where it hangs: curl -v -m 5 ${protocol}//${host}/health`,
      )
    case 'certificate':
      return finding(
        'certificate',
        `this machine does not trust the certificate of ${host} for that name`,
        'use the name in the certificate, or trust its issuer: export NODE_EXTRA_CA_CERTS=ISSUER.pem',
      )
    case 'plain':
    case 'closed':
      return finding(
        'closed',
        `${host} closes the connection on ${protocol.slice(0, -1)} requests`,
        `check that this is the port of the service: --url ${protocol}//${hostname}:${port === '' ? 'PORT' : port}/v1`,
      )
  }
}

function finding(code: string, what: string, fix: string): Finding {
  return { code, what, fix, blocks: true }
}

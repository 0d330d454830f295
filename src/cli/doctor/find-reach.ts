import type { Silence } from './ask.ts'
import type { Finding, Telling } from './finding.ts'
import type { Sight, Subject } from './look.ts'
import { isOurs, refusalOf, shown } from './read-answer.ts'

/** What proxies answer where nothing is behind them. */
const cannotReach = [502, 503, 504]

/** What keeps requests from reaching the service at all: its URL, or what stands before it. */
export function findReach(subject: Subject, sight: Sight, telling: Telling): Finding | undefined {
  const { models, elsewhere, catalog } = sight
  const given = new URL(subject.baseUrl)
  if (elsewhere !== undefined) return otherUrl(given, new URL(elsewhere))
  if (models.kind === 'silence') return silence(given, models, telling)
  if (isOurs(models)) {
    const refusal = refusalOf(models)
    if (refusal?.code === 'not_found')
      return finding('url_path', `${subject.baseUrl} is not the base URL of this service`, refusal.message)
    if (refusal !== undefined || models.status === 200) return undefined
    const again = `look at it by itself: curl -i ${subject.baseUrl}/models`
    return finding('unexpected', `${subject.baseUrl} answers ${models.status} and does not say why`, again)
  }
  if (cannotReach.includes(models.status))
    return finding(
      'proxy_unreached',
      `a proxy at ${given.host} answers ${models.status}: it does not reach the service behind it`,
      `start the service, or correct the address that the proxy has for it: ${telling.command('start')}`,
    )
  const location = models.headers.location
  if (models.status >= 300 && models.status < 400 && typeof location === 'string') {
    const target = shown(location.replace(/\/models\/?$/, ''))
    return finding('url_redirect', `${subject.baseUrl} only leads to another address`, `use that one: --url ${target}`)
  }
  if (isOurs(catalog))
    return finding(
      'proxy_blocks',
      `the service is there, but a proxy in front of it answers ${models.status} for ${given.pathname}`,
      `let the proxy pass ${given.pathname}/ on to the service unchanged`,
    )
  const type = shown(models.headers['content-type'] ?? 'nothing').split(';')[0]
  return finding(
    'not_svc_router',
    `what answers at ${subject.baseUrl} is not svc-router (status ${models.status}, ${type})`,
    telling.isOwn
      ? `stop the other program or choose another port: ${telling.command('start --port 8788')}`
      : 'use the base URL that svc-router prints when it starts: --url https://HOST/v1',
  )
}

function otherUrl(given: URL, right: URL): Finding {
  const fix = `use --url ${right.href}`
  if (given.protocol !== right.protocol)
    return finding(
      'url_scheme',
      `the service at ${right.host} speaks ${right.protocol.slice(0, -1)}, not ${given.protocol.slice(0, -1)}`,
      fix,
    )
  return finding(
    'url_path',
    `the base URL of the service ends in /v1, and ${given.href.replace(/\/$/, '')} does not lead there`,
    fix,
  )
}

function silence({ host, hostname, protocol, port }: URL, { reason }: Silence, telling: Telling): Finding {
  switch (reason) {
    case 'refused':
      return telling.isOwn
        ? finding('refused', `svc-router does not run: nothing listens at ${host}`, telling.command('start'))
        : finding(
            'refused',
            `nothing listens at ${host}`,
            `start the service there, or correct the port: --url ${protocol}//${hostname}:PORT/v1`,
          )
    case 'unresolved':
      return finding(
        'unresolved',
        `there is no host ${hostname}`,
        'correct the name in the URL, or your DNS: --url https://HOST/v1',
      )
    case 'unreachable':
      return finding('unreachable', `${host} cannot be reached from here`, `check the network: ping ${hostname}`)
    case 'timeout':
      return finding(
        'timeout',
        `${host} takes the connection or the request and does not answer`,
        `see where it hangs: curl -v -m 5 ${protocol}//${host}/health`,
      )
    case 'certificate':
      return finding(
        'certificate',
        `the certificate of ${host} is not one that this machine trusts for that name`,
        'use the name in the certificate, or trust its issuer: export NODE_EXTRA_CA_CERTS=ISSUER.pem',
      )
    case 'plain':
    case 'closed':
      return finding(
        'closed',
        `${host} hangs up on ${protocol.slice(0, -1)} requests`,
        `check that the service's own port is meant: --url ${protocol}//${hostname}:${port === '' ? 'PORT' : port}/v1`,
      )
  }
}

function finding(code: string, what: string, fix: string): Finding {
  return { code, what, fix, blocks: true }
}

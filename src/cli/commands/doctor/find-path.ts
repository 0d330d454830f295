import type { Finding, Wording } from './finding.ts'
import type { Observations } from './inspect-service.ts'
import { isOurs, jsonOf, apiErrorOf, shown } from './read-answer.ts'

/** A larger clock difference makes clients wait for the wrong reset time, and certificates fail. */
const maxClockSkewMs = 30_000
/** The service sends the probe's events over 200 ms; a buffering proxy delivers them all at once. */
const minSpreadMs = 50

/** Checks the clock, the readiness of the service, and stream buffering by proxies. */
export function findPath(sight: Observations): Finding[] {
  return [findReadiness(sight), findBuffering(sight), findClock(sight)].filter((finding) => finding !== undefined)
}

function findReadiness({ ready }: Observations): Finding | undefined {
  if (!isOurs(ready) || jsonOf(ready)['ready'] !== false) return undefined
  const reasons = jsonOf(ready)['reasons']
  const why = Array.isArray(reasons) ? shown(reasons.map(String).join(', ')) : 'it does not say why'
  return {
    code: 'not_ready',
    what: `the service is not ready for requests: ${why}`,
    fix: 'check its log, or wait until it has restarted',
    blocks: true,
  }
}

function findBuffering({ stream }: Observations): Finding | undefined {
  if (stream?.kind !== 'answer') return undefined
  if (!(stream.headers['content-type'] ?? '').startsWith('text/event-stream')) return undefined
  const first = stream.pieceMs[0] ?? 0
  const last = stream.pieceMs.at(-1) ?? 0
  if (last - first >= minSpreadMs) return undefined
  return {
    code: 'buffering',
    what: 'a proxy in front of the service buffers streams until they are complete',
    fix: 'disable buffering in the proxy; for nginx: proxy_buffering off;',
    blocks: false,
  }
}

function findClock(sight: Observations): Finding | undefined {
  const answer = [sight.models, sight.ready].find((outcome) => isOurs(outcome))
  if (answer?.kind !== 'answer') return undefined
  const serverMs = Date.parse(answer.headers.date ?? '')
  if (Number.isNaN(serverMs)) return undefined
  const aheadMs = answer.wallMs - serverMs
  if (Math.abs(aheadMs) <= maxClockSkewMs) return undefined
  const seconds = Math.round(Math.abs(aheadMs) / 1000)
  const far = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
  return {
    code: 'clock',
    what: `this machine's clock is ${far} ${aheadMs > 0 ? 'ahead of' : 'behind'} the service's`,
    fix: 'set the clock that is wrong: sudo timedatectl set-ntp true',
    blocks: false,
  }
}

/** Checks the result of one real request. */
export function findAsked({ asked }: Observations, { command, isOwn }: Wording): Finding | undefined {
  if (asked === undefined) return undefined
  const apiError = apiErrorOf(asked)
  if (apiError === undefined && asked.kind === 'answer' && asked.status === 200 && isWhole(asked.body)) return undefined
  const id = asked.kind === 'answer' ? shown(String(asked.headers['x-request-id'] ?? '')) : ''
  const fix = isOwn && id !== '' ? command(`request ${id}`) : `send the operator of the service the request ID ${id}`
  return {
    code: apiError?.code ?? 'answer_broken',
    what:
      apiError?.message.replace(/\.$/, '') ??
      `the response to a real request ${asked.kind === 'silence' ? 'did not arrive' : 'was incomplete'}`,
    fix: id === '' ? command('connect curl') : fix,
    blocks: true,
  }
}

/** Whether the stream is complete. A broken stream has an error event before its end. */
function isWhole(body: string): boolean {
  return body.trimEnd().endsWith('data: [DONE]') && !body.includes('data: {"error"')
}

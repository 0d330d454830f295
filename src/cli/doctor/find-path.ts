import type { Finding, Telling } from './finding.ts'
import type { Sight } from './look.ts'
import { isOurs, jsonOf, refusalOf, shown } from './read-answer.ts'

/** Clocks that differ by more make resets wrong that clients wait for, and certificates fail. */
const maxClockSkewMs = 30_000
/** The probe's events leave 200 ms from first to last; what holds them back lets them go at once. */
const minSpreadMs = 50

/** What is wrong with the clock, with the service's readiness, and with what streams pass through. */
export function findPath(sight: Sight): Finding[] {
  return [findReadiness(sight), findBuffering(sight), findClock(sight)].filter((finding) => finding !== undefined)
}

function findReadiness({ ready }: Sight): Finding | undefined {
  if (!isOurs(ready) || jsonOf(ready)['ready'] !== false) return undefined
  const reasons = jsonOf(ready)['reasons']
  const why = Array.isArray(reasons) ? shown(reasons.map(String).join(', ')) : 'it does not say why'
  return {
    code: 'not_ready',
    what: `the service is not ready for requests: ${why}`,
    fix: 'see its log, or wait until it has restarted',
    blocks: true,
  }
}

function findBuffering({ stream }: Sight): Finding | undefined {
  if (stream?.kind !== 'answer') return undefined
  if (!(stream.headers['content-type'] ?? '').startsWith('text/event-stream')) return undefined
  const first = stream.pieceMs[0] ?? 0
  const last = stream.pieceMs.at(-1) ?? 0
  if (last - first >= minSpreadMs) return undefined
  return {
    code: 'buffering',
    what: 'a proxy in front of the service holds streams back until they are complete',
    fix: 'turn its buffering off, with nginx: proxy_buffering off;',
    blocks: false,
  }
}

function findClock(sight: Sight): Finding | undefined {
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

/** What is wrong with one real request that was sent. */
export function findAsked({ asked }: Sight, { command, isOwn }: Telling): Finding | undefined {
  if (asked === undefined) return undefined
  const refusal = refusalOf(asked)
  if (refusal === undefined && asked.kind === 'answer' && asked.status === 200 && isWhole(asked.body)) return undefined
  const id = asked.kind === 'answer' ? shown(String(asked.headers['x-request-id'] ?? '')) : ''
  const fix = isOwn && id !== '' ? command(`request ${id}`) : `tell the operator of the service the request id ${id}`
  return {
    code: refusal?.code ?? 'answer_broken',
    what:
      refusal?.message.replace(/\.$/, '') ??
      `the answer to a real request ${asked.kind === 'silence' ? 'did not come' : 'was not whole'}`,
    fix: id === '' ? command('connect curl') : fix,
    blocks: true,
  }
}

/** A stream that broke says so in a frame of its own, before its end. */
function isWhole(body: string): boolean {
  return body.trimEnd().endsWith('data: [DONE]') && !body.includes('data: {"error"')
}

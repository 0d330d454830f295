import { readStream, readWhole, type ReadAnswer } from '../answer-reading.ts'
import { type Exchange, firstOf } from '../client.ts'
import { callsOf, type Evidence, idOf, type Invariant, isFusion, sawDisturbance, sawOutage } from '../evidence.ts'
import type { ProviderCall } from '../provider.ts'

/** The service asks at most this many backends for one request, and each at most this often (contract 7.5, 7.9-7.11). */
const maxBackends = 3
const maxAttemptsOfBackend = 2
/** As configured in the template. */
const keepAliveMs = 1_000
/** The longest of the time limits in the template, with the time between two checks. */
const longestSilenceMs = 5_200
/** How soon upstream calls end after their client disconnects, with the time of the network. */
const abandonWithinMs = 110

/** What clients receive. */
export const answerInvariants: readonly Invariant[] = [
  {
    id: 'I8',
    sentence:
      'Every authenticated answer reports counters that add up: used and remaining are the limit. A rejection reports none if they cannot be read.',
    *check(evidence) {
      for (const exchange of evidence.exchanges) {
        const { number, response } = exchange
        const { status, headers } = response
        if (status === undefined || status === 401 || status === 503 || status === 408) continue
        // Contract 5.9.
        if (status >= 400 && !headers.has('x-quota-limit') && sawOutage(evidence, exchange)) continue
        const [limit, used, remaining] = ['x-quota-limit', 'x-quota-used', 'x-quota-remaining'].map((name) =>
          Number(headers.get(name) ?? Number.NaN),
        ) as [number, number, number]
        if (!(used >= 0 && remaining >= 0 && used + remaining === limit))
          yield `request ${number}: ${used} used and ${remaining} remaining of ${limit}`
        if (!(Number(headers.get('x-ratelimit-remaining') ?? Number.NaN) >= 0)) yield `request ${number}: no rate limit`
      }
    },
  },
  {
    id: 'I13',
    sentence:
      'A request calls at most 3 backends, none after its first content or the disconnect of its client, and says how many failed.',
    *check(evidence) {
      for (const exchange of evidence.exchanges) {
        if (isFusion(exchange) || exchange.plan.isNamed) continue
        const calls = callsOf(evidence, exchange)
        const providers = new Set(calls.map(({ provider }) => provider))
        if (providers.size > maxBackends) yield `request ${exchange.number}: ${providers.size} backends`
        yield* lateCalls(evidence, exchange, calls)
        yield* wrongCount(evidence, exchange, calls)
      }
    },
  },
  {
    id: 'I14',
    sentence:
      'An answer ends exactly once: as a whole, with an error, or with a closed connection; and only a whole one looks whole.',
    *check(evidence) {
      for (const exchange of evidence.exchanges) {
        const { response, plan, end } = exchange
        if (response.status !== 200 || end === 'left') continue
        if (end !== 'whole') {
          // A stream that keep-alives opened ends so if its charge cannot be recorded.
          const isExpected =
            sawDisturbance(evidence, exchange) ||
            plan.msPerByte !== undefined ||
            (end === 'reset' && sawOutage(evidence, exchange))
          if (!isExpected) yield `request ${exchange.number}: the connection was closed within an answer`
          continue
        }
        let read: ReadAnswer
        try {
          read = (plan.stream ? readStream : readWhole)(plan.format, response.body)
        } catch (error) {
          yield `request ${exchange.number}: ${String(error)}`
          continue
        }
        if (read.finishes + read.errors !== 1 || read.isAfterEnd)
          yield `request ${exchange.number}: ${read.finishes} ends, ${read.errors} errors, ${read.isAfterEnd ? 'events after the end' : 'nothing after it'}`
        if (!isFusion(exchange)) yield* wrongText(evidence, exchange, read)
      }
    },
  },
  {
    id: 'I15',
    sentence: "No client receives what was written for another request, and no provider another account's credential.",
    *check({ exchanges, calls, world }) {
      for (const exchange of exchanges) {
        const { number, plan, response } = exchange
        for (const [, account, request] of response.body.matchAll(/for-(\d+)-(\d+)-/g))
          if (Number(account) !== plan.account || Number(request) !== firstOf(exchange).number)
            yield `request ${number} of account ${plan.account} got the text for ${request} of account ${account}`
      }
      for (const { number, provider, account, authorization } of calls) {
        const isOwn = provider === 'own'
        if (isOwn && account !== world.ownerOfUpstream)
          yield `call ${number}: account ${account} used another's provider`
        if ((authorization !== undefined) !== isOwn)
          yield `call ${number} of ${provider}: authorization ${authorization}`
      }
    },
  },
  {
    id: 'S3',
    sentence: 'A silent provider is given up within its time limits.',
    *check(evidence) {
      for (const exchange of evidence.exchanges) {
        const { isNamed, msPerByte } = exchange.plan
        if (isFusion(exchange) || isNamed || msPerByte !== undefined || sawDisturbance(evidence, exchange)) continue
        if (sawOutage(evidence, exchange)) continue
        for (const { number, lastSentMs, abandonedMs, completedMs } of callsOf(evidence, exchange)) {
          if (completedMs !== undefined || abandonedMs === undefined) continue
          if (abandonedMs - lastSentMs > longestSilenceMs)
            yield `call ${number} was silent for ${abandonedMs - lastSentMs} ms`
        }
      }
    },
  },
  {
    id: 'S5',
    sentence: 'A provider that answered in full and in time is believed: its answer is the one that counts.',
    *check(evidence) {
      for (const exchange of evidence.exchanges) {
        const { number, end, plan } = exchange
        if (isFusion(exchange) || plan.isNamed || end === 'left' || plan.msPerByte !== undefined) continue
        if (sawDisturbance(evidence, exchange) || sawOutage(evidence, exchange)) continue
        const last = callsOf(evidence, exchange).at(-1)
        const attempts = evidence.rows.get(idOf(exchange) ?? '')?.attempts
        if (last?.treatment.kind !== 'answer' || last.completedMs === undefined || attempts == null) continue
        const outcome = (JSON.parse(attempts) as { outcome: string }[]).at(-1)?.outcome
        if (outcome !== 'answered') yield `request ${number}: call ${last.number} ended as ${outcome}`
      }
    },
  },
  {
    id: 'S4',
    sentence: 'A drain ends every answer that it aborts with an error.',
    *check({ exchanges, world }) {
      if (world.outages.length + world.pauses.length + world.crashes.length > 0) return
      for (const { number, plan, startedMs, end, endedMs } of exchanges) {
        const began = startedMs + (plan.sendsSlowlyMs ?? 0) + 100
        const isCut = world.restarts.some(
          ({ atMs, untilMs }) => began < atMs && endedMs! >= atMs && endedMs! <= untilMs + 10,
        )
        if (isCut && end !== 'whole' && end !== 'left' && plan.msPerByte === undefined)
          yield `request ${number} was ${end} by a drain`
      }
    },
  },
  {
    id: 'S1',
    sentence: 'Every request ends, and nothing in the service fails unexpectedly.',
    *check({ exchanges, world }) {
      for (const { number, end, response } of exchanges) {
        if (end === undefined) yield `request ${number} hangs`
        if (response.body.includes('"internal_error"')) yield `request ${number}: ${response.body}`
        if (response.status !== undefined && !statuses.has(response.status))
          yield `request ${number}: ${response.status}`
      }
      for (const { event } of world.events) if (event.event === 'internal_error') yield JSON.stringify(event)
    },
  },
  {
    id: 'S2',
    sentence: '`Retry-After` is a whole number of seconds from 1 to 60.',
    *check({ exchanges }) {
      for (const { number, response } of exchanges) {
        const given = response.headers.get('retry-after')
        if (given === undefined) {
          if (response.status === 429) yield `request ${number}: a 429 without it`
        } else if (!/^[1-9]\d?$/.test(given) || Number(given) > 60) yield `request ${number}: ${given}`
      }
    },
  },
]

const statuses: ReadonlySet<number> = new Set([200, 400, 401, 402, 403, 404, 408, 413, 422, 429, 502, 503, 504])

function* lateCalls(evidence: Evidence, exchange: Exchange, calls: readonly ProviderCall[]): Iterable<string> {
  const { firstContentMs, endedMs, end, number } = exchange
  const isDisturbed = sawDisturbance(evidence, exchange)
  for (const call of calls) {
    if (firstContentMs !== undefined && call.atMs > firstContentMs)
      yield `request ${number}: call ${call.number} after its first content`
    if (end !== 'left' || endedMs === undefined || isDisturbed) continue
    if (call.atMs > endedMs + abandonWithinMs) yield `request ${number}: call ${call.number} after its client left`
    const { abandonedMs, completedMs } = call
    if (completedMs === undefined && abandonedMs !== undefined && abandonedMs > endedMs + abandonWithinMs)
      yield `request ${number}: call ${call.number} went on for ${abandonedMs - endedMs} ms after its client left`
  }
}

function* wrongCount({ rows }: Evidence, exchange: Exchange, calls: readonly ProviderCall[]): Iterable<string> {
  const row = rows.get(idOf(exchange) ?? '')
  const said = exchange.response.headers.get('x-svc-router-retry-count')
  if (row?.attempts == null) return
  const attempts = (JSON.parse(row.attempts) as { backend: string }[]).map(({ backend }) => backend)
  for (const backend of new Set(attempts)) {
    const count = attempts.filter((each) => each === backend).length
    if (count > maxAttemptsOfBackend) yield `request ${exchange.number}: ${count} attempts of ${backend}`
    // A call that a reused connection loses is sent once more, as the same attempt.
    const sent = calls.filter(
      ({ provider, isReused, treatment }) =>
        (provider === backend || (provider === 'own' && backend.startsWith('ups_'))) &&
        !(isReused && treatment.kind === 'reset'),
    )
    if (sent.length > count) yield `request ${exchange.number}: ${sent.length} calls of ${backend} in ${count} attempts`
  }
  if (exchange.response.status !== 200) return
  // The head of a stream that was silent for long was sent before its backend was known.
  if (exchange.plan.stream && (row.first_content_ms ?? row.total_ms ?? 0) >= keepAliveMs) return
  const backends = new Set(attempts)
  if (backends.size > 0 && Number(said) !== backends.size - 1)
    yield `request ${exchange.number}: says ${said} retries, and asked ${backends.size} backends`
}

/** The text must be what one provider wrote: all of it if the answer looks whole, else its beginning. */
function* wrongText(evidence: Evidence, exchange: Exchange, read: ReadAnswer): Iterable<string> {
  const calls = callsOf(evidence, exchange)
  const { number } = exchange
  if (read.errors === 0) {
    if (!read.isComplete) yield `request ${number} ends regularly, and is not complete: ${JSON.stringify(read.text)}`
    const source = calls.find(({ text }) => text === read.text)
    if (source === undefined) yield `request ${number} looks whole: ${JSON.stringify(read.text)}`
    else if (source.completedMs === undefined) yield `request ${number} looks whole, and call ${source.number} was not`
  } else if (read.text !== '' && !calls.some(({ text }) => text.startsWith(read.text)))
    yield `request ${number}: no provider wrote ${JSON.stringify(read.text)}`
}

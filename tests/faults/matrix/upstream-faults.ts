import type { AttemptOutcome } from '../../../src/domain/upstream.ts'

/** A part of a healthy answer. A stream has all but `half` and `rest`; a whole answer is `head`, `half`, and `rest`. */
export type Part = 'head' | 'opening' | 'content' | 'more' | 'terminal' | 'half' | 'rest'

/** What a faulty backend does with a request, in order. After the last act it stays silent. */
export type Act =
  | { readonly send: Part }
  /** Body text that no healthy answer contains, latin1. */
  | { readonly raw: string }
  /** Parts of a body in one packet. */
  | { readonly together: readonly Act[] }
  /** Bytes outside the framing of the body, latin1. */
  | { readonly bytes: string }
  /** A complete rejection. */
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly code?: string }
  | { readonly waitMs: number }
  /** Waits until the service has read what was sent. */
  | { readonly flush: true }
  /** Waits until the test says so. */
  | { readonly released: true }
  /** `end`: the end of the body; the connection stays open. `fin` and `rst` close the connection. */
  | { readonly close: 'end' | 'fin' | 'rst' }
  /** Resets the connection if it has carried a request before. */
  | { readonly resetIfReused: true }

/** What the contract says that a fault is. */
export type FaultClass =
  /** The answer is complete. `warm`: after another request on the same connection. */
  | { readonly is: 'answer'; readonly warm?: true }
  /** The attempt fails before content, so the next backend is asked (contract 7.3). */
  | {
      readonly is: 'failure'
      readonly outcome: Exclude<AttemptOutcome, 'answered'>
      /** Asked once more at the same backend (contract 7.9). */
      readonly again?: true
      /** Opens the circuit breaker at once (contract 7.17, 8.6). */
      readonly opens?: { readonly reason: 'rate' | 'credentials'; readonly seconds: number }
      readonly logs?: 'upstream_credentials_rejected' | 'upstream_not_found'
    }
  /** The content is at fault: no other backend is asked (contract 7.13). */
  | { readonly is: 'rejection'; readonly status: number }
  /** The answer breaks off after content (contract 7.4). */
  | { readonly is: 'break' }

interface Behavior {
  readonly acts: readonly Act[]
  readonly is: FaultClass
}

export interface UpstreamFault {
  readonly name: string
  /** The rows of the contract that decide what happens. */
  readonly rows: string
  /** Where the backend is, if not at the scripted server. */
  readonly address?: 'refused' | 'plain-for-tls' | 'silent-for-tls' | 'untrusted-certificate'
  /** The backend's timeouts, as configured. */
  readonly timeouts?: Readonly<Record<string, string>>
  /** Absent if the fault does not exist for such answers. */
  readonly stream?: Behavior
  readonly whole?: Behavior
}

/** What a provider says in an error. No answer and no log may contain it (contract 4.10, 28.2). */
export const secretText = 'CANARY-of-the-provider'

const answer: FaultClass = { is: 'answer' }
const fails = (outcome: Extract<FaultClass, { is: 'failure' }>['outcome'], more: object = {}): FaultClass => ({
  is: 'failure',
  outcome,
  ...more,
})
const rate = (seconds: number): FaultClass => fails('rate_limited', { opens: { reason: 'rate', seconds } })
const credentials = { outcome: 'rejected_credentials', logs: 'upstream_credentials_rejected' } as const
const end = { close: 'end' } as const
const send = (...parts: readonly Part[]): Act[] => parts.map((part) => ({ send: part }))
/** Content that has been sent to the client when the fault follows. */
const begun: readonly Act[] = [...send('head', 'opening', 'content'), { flush: true }]
const complete = send('head', 'opening', 'content', 'more', 'terminal')
const both = (acts: readonly Act[], is: FaultClass): Pick<UpstreamFault, 'stream' | 'whole'> => ({
  stream: { acts, is },
  whole: { acts, is },
})
const rejects = (status: number, is: FaultClass, headers?: Readonly<Record<string, string>>, code?: string) =>
  both([{ status, ...(headers && { headers }), ...(code !== undefined && { code }) }], is)
const retryAfter = (value: string) => ({ 'retry-after': value })
/** An HTTP date so many seconds from now, when the fault happens. */
const dateIn = (seconds: number): string => `DATE+${seconds}`
const errorEvent = `event: error\ndata: {"type":"error","error":{"type":"server_error","message":"${secretText}"}}\n\n`
const errorBody = `{"error":{"type":"server_error","message":"${secretText}"}}`
const html = `<!doctype html><title>${secretText}</title>`
const okHead = (type: string, more = ''): Act => ({
  bytes: `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${more}\r\n`,
})
const short = { first_content: '250ms', whole_answer: '250ms' }

/** Faults before the backend has answered anything. */
const connections: readonly UpstreamFault[] = [
  {
    name: 'none',
    rows: '6.4',
    stream: { acts: [...complete, end], is: answer },
    whole: { acts: send('head', 'half', 'rest'), is: answer },
  },
  { name: 'connect-refused', rows: '7.3', address: 'refused', ...both([], fails('unreachable')) },
  { name: 'tls-to-plain', rows: '7.3', address: 'plain-for-tls', ...both([], fails('unreachable')) },
  { name: 'tls-untrusted', rows: '7.3', address: 'untrusted-certificate', ...both([], fails('unreachable')) },
  {
    name: 'tls-silent',
    rows: '7.3, 9.1',
    address: 'silent-for-tls',
    timeouts: { connect: '200ms' },
    ...both([], fails('timeout')),
  },
  { name: 'reset-before-head', rows: '7.3', ...both([{ close: 'rst' }], fails('reset')) },
  { name: 'fin-before-head', rows: '7.3', ...both([{ close: 'fin' }], fails('reset')) },
  {
    name: 'fin-in-head',
    rows: '7.3',
    ...both([{ bytes: 'HTTP/1.1 200 OK\r\ncontent-ty' }, { close: 'fin' }], fails('reset')),
  },
  { name: 'not-http', rows: '7.3', ...both([{ bytes: `SSH-2.0-${secretText}\r\n` }], fails('broken')) },
  {
    name: 'reset-on-reuse',
    rows: '7.10',
    stream: { acts: [{ resetIfReused: true }, ...complete, end], is: { is: 'answer', warm: true } },
    whole: { acts: [{ resetIfReused: true }, ...send('head', 'half', 'rest')], is: { is: 'answer', warm: true } },
  },
  { name: 'silent', rows: '7.3, 9.3, 9.4', timeouts: short, ...both([], fails('timeout')) },
  {
    name: 'silent-head',
    rows: '7.3, 9.2, 9.8',
    timeouts: { headers: '200ms', first_content: '500ms', whole_answer: '500ms' },
    ...both([], fails('timeout')),
  },
  {
    name: 'slow-head',
    rows: '6.4',
    stream: { acts: [{ waitMs: 150 }, ...complete, end], is: answer },
    whole: { acts: [{ waitMs: 150 }, ...send('head', 'half', 'rest')], is: answer },
  },
]

const rejections: readonly UpstreamFault[] = [
  { name: '400', rows: '7.13', ...rejects(400, { is: 'rejection', status: 400 }) },
  { name: '413', rows: '7.13', ...rejects(413, { is: 'rejection', status: 413 }) },
  { name: '422', rows: '7.13', ...rejects(422, { is: 'rejection', status: 422 }) },
  {
    name: '401',
    rows: '7.3, 7.17',
    ...rejects(401, { is: 'failure', ...credentials, opens: { reason: 'credentials', seconds: 25 } }),
  },
  { name: '402', rows: '7.3, 7.20', ...rejects(402, { is: 'failure', ...credentials }) },
  { name: '403', rows: '7.3, 7.20', ...rejects(403, { is: 'failure', ...credentials }) },
  { name: '404', rows: '7.3, 4.53', ...rejects(404, fails('not_found', { logs: 'upstream_not_found' })) },
  { name: '408', rows: '7.3', ...rejects(408, fails('timeout')) },
  { name: '429', rows: '7.3, 8.6', ...rejects(429, rate(5)) },
  { name: '429-retry-0', rows: '8.6', ...rejects(429, rate(1), retryAfter('0')) },
  { name: '429-retry-1', rows: '8.6', ...rejects(429, rate(1), retryAfter('1')) },
  { name: '429-retry-30', rows: '8.6', ...rejects(429, rate(30), retryAfter('30')) },
  { name: '429-retry-1e12', rows: '8.6', ...rejects(429, rate(60), retryAfter('1000000000000')) },
  { name: '429-retry-date', rows: '8.6', ...rejects(429, rate(30), retryAfter(dateIn(30))) },
  { name: '429-retry-past', rows: '8.6', ...rejects(429, rate(1), retryAfter(dateIn(-3600))) },
  { name: '429-retry-garbage', rows: '8.6', ...rejects(429, rate(5), retryAfter('1e12 soon')) },
  { name: '429-retry-negative', rows: '8.6', ...rejects(429, rate(5), retryAfter('-7')) },
  {
    name: '429-no-balance',
    rows: '7.17',
    ...rejects(
      429,
      { is: 'failure', ...credentials, opens: { reason: 'credentials', seconds: 25 } },
      {},
      'insufficient_quota',
    ),
  },
  { name: '500', rows: '7.3, 7.9', ...rejects(500, fails('server_error', { again: true })) },
  { name: '501', rows: '7.3', ...rejects(501, fails('server_error')) },
  { name: '502', rows: '7.3', ...rejects(502, fails('server_error')) },
  { name: '503', rows: '7.3', ...rejects(503, fails('server_error')) },
  { name: '504', rows: '7.3', ...rejects(504, fails('timeout')) },
  { name: '529', rows: '7.3', ...rejects(529, fails('server_error')) },
  { name: '502-retry-30', rows: '8.6', ...rejects(502, fails('server_error'), retryAfter('30')) },
  {
    name: '503-retry-30',
    rows: '8.6',
    ...rejects(503, fails('server_error', { opens: { reason: 'rate', seconds: 30 } }), retryAfter('30')),
  },
  {
    name: '529-retry-30',
    rows: '8.6',
    ...rejects(529, fails('server_error', { opens: { reason: 'rate', seconds: 30 } }), retryAfter('30')),
  },
  { name: '307', rows: '7.3, 21.13', ...rejects(307, fails('server_error'), { location: '/v1/elsewhere' }) },
  {
    name: '503-endless-body',
    rows: '7.3, 9.13',
    ...both(
      [{ bytes: 'HTTP/1.1 503 Down\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{' }],
      fails('server_error'),
    ),
  },
]

/** Faults of an answer with status 200, before its first content. */
const beforeContent: readonly UpstreamFault[] = [
  {
    name: 'html',
    rows: '10.6, 10.14',
    ...both([okHead('text/html', `content-length: ${html.length}\r\n`), { bytes: html }], fails('broken')),
  },
  {
    name: 'empty-200',
    rows: '7.3, 10.14',
    ...both([okHead('application/json', 'content-length: 0\r\n')], fails('broken')),
  },
  { name: 'empty-stream', rows: '7.3, 10.14', stream: { acts: [...send('head'), end], is: fails('broken') } },
  {
    name: 'opening-only',
    rows: '7.3, 10.14',
    stream: { acts: [...send('head', 'opening'), end], is: fails('broken') },
  },
  {
    name: 'error-first',
    rows: '10.6, 10.14',
    stream: { acts: [...send('head'), { raw: errorEvent }, end], is: fails('server_error') },
    whole: {
      acts: [okHead('application/json', `content-length: ${errorBody.length}\r\n`), { bytes: errorBody }],
      is: fails('server_error'),
    },
  },
  {
    name: 'error-after-opening',
    rows: '10.6',
    stream: { acts: [...send('head', 'opening'), { raw: errorEvent }, end], is: fails('server_error') },
  },
  {
    name: 'bad-json',
    rows: '10.6, 10.14',
    stream: { acts: [...send('head'), { raw: 'data: {"id":"x\n\n' }, end], is: fails('broken') },
    whole: { acts: [okHead('application/json', 'content-length: 8\r\n'), { bytes: '{"id":"x' }], is: fails('broken') },
  },
  {
    name: 'bad-utf8',
    rows: '10.6, 10.14',
    stream: { acts: [...send('head'), { raw: 'data: \u00ff\u00fe{"\u0080":1}\n\n' }, end], is: fails('broken') },
    whole: {
      acts: [okHead('application/json', 'content-length: 6\r\n'), { bytes: '\u00ff\u00fe{}\u0080\u0080' }],
      is: fails('broken'),
    },
  },
  {
    name: 'gzip',
    rows: '10.6, 10.14',
    // Nobody asked for it: ten bytes here, any number of bytes once decompressed.
    stream: {
      acts: [
        okHead('text/event-stream', 'content-encoding: gzip\r\ntransfer-encoding: chunked\r\n'),
        { raw: '\u001f\u008b\b\0\0\0\0\0\0\u0003' },
        end,
      ],
      is: fails('broken'),
    },
    whole: {
      acts: [
        okHead('application/json', 'content-encoding: gzip\r\ncontent-length: 10\r\n'),
        { bytes: '\u001f\u008b\b\0\0\0\0\0\0\u0003' },
      ],
      is: fails('broken'),
    },
  },
  {
    name: 'long-line-first',
    rows: '9.13',
    stream: { acts: [...send('head'), { raw: `data: ${'x'.repeat(700_000)}` }], is: fails('broken') },
  },
  { name: 'bad-chunk', rows: '7.3', stream: { acts: [...send('head'), { bytes: 'zz\r\n' }], is: fails('broken') } },
  {
    name: 'rst-after-head',
    rows: '7.3',
    stream: { acts: [...send('head', 'opening'), { close: 'rst' }], is: fails('reset') },
  },
  {
    name: 'fin-after-head',
    rows: '7.3',
    stream: { acts: [...send('head', 'opening'), { close: 'fin' }], is: fails('reset') },
  },
  {
    name: 'silent-after-head',
    rows: '7.3, 9.3, 9.4',
    timeouts: short,
    stream: { acts: send('head', 'opening'), is: fails('timeout') },
    whole: { acts: send('head'), is: fails('timeout') },
  },
  {
    name: 'keep-alives-only',
    rows: '9.9',
    timeouts: short,
    stream: {
      acts: [...send('head'), ...[1, 2, 3, 4, 5, 6].flatMap((): Act[] => [{ raw: ': ping\n\n' }, { waitMs: 80 }])],
      is: fails('timeout'),
    },
  },
  {
    name: 'slow-first-token',
    rows: '6.4',
    stream: {
      acts: [...send('head', 'opening'), { waitMs: 150 }, ...send('content', 'more', 'terminal'), end],
      is: answer,
    },
  },
]

/** Faults in the middle of an answer, at its end, and after it. */
const afterContent: readonly UpstreamFault[] = [
  {
    name: 'rst-in-middle',
    rows: '7.3, 10.2-10.4',
    stream: { acts: [...begun, { close: 'rst' }], is: { is: 'break' } },
    whole: { acts: [...send('head', 'half'), { close: 'rst' }], is: fails('reset') },
  },
  {
    name: 'fin-in-middle',
    rows: '7.3, 10.2-10.4',
    stream: { acts: [...begun, { close: 'fin' }], is: { is: 'break' } },
    whole: { acts: [...send('head', 'half'), { close: 'fin' }], is: fails('reset') },
  },
  {
    name: 'fin-in-event',
    rows: '10.2-10.5',
    stream: { acts: [...begun, { raw: 'data: {"ch' }, { close: 'fin' }], is: { is: 'break' } },
  },
  { name: 'end-without-finish', rows: '10.5', stream: { acts: [...begun, end], is: { is: 'break' } } },
  {
    name: 'stall-in-middle',
    rows: '9.4, 9.5, 10.2-10.4',
    timeouts: { idle: '250ms', whole_answer: '250ms' },
    stream: { acts: begun, is: { is: 'break' } },
    whole: { acts: send('head', 'half'), is: fails('timeout') },
  },
  // Nothing was sent yet, so the caller need not see the fault.
  {
    name: 'error-with-content',
    rows: '10.9',
    stream: {
      acts: [...send('head'), { together: [...send('opening', 'content'), { raw: errorEvent }] }, end],
      is: fails('server_error'),
    },
  },
  {
    name: 'error-in-middle',
    rows: '10.6',
    stream: { acts: [...begun, { raw: errorEvent }, end], is: { is: 'break' } },
  },
  {
    name: 'bad-json-in-middle',
    rows: '10.6',
    stream: { acts: [...begun, { raw: 'data: {"id":"x\n\n' }, end], is: { is: 'break' } },
  },
  { name: 'html-in-middle', rows: '10.8', stream: { acts: [...begun, { raw: html }, end], is: { is: 'break' } } },
  { name: 'bad-chunk-in-middle', rows: '10.6', stream: { acts: [...begun, { bytes: 'zz\r\n' }], is: { is: 'break' } } },
  { name: 'duplicate-finish', rows: '10.9', stream: { acts: [...complete, ...send('terminal'), end], is: answer } },
  { name: 'error-after-end', rows: '10.9', stream: { acts: [...complete, { raw: errorEvent }, end], is: answer } },
  {
    name: 'bytes-after-end',
    rows: '10.9',
    stream: { acts: [...complete, { raw: '\u0000\u00ff garbage' }, end], is: answer },
  },
  { name: 'rst-after-end', rows: '10.9', stream: { acts: [...complete, { close: 'rst' }], is: answer } },
  { name: 'open-after-end', rows: '10.16', stream: { acts: complete, is: answer } },
  {
    name: 'bytes-after-body',
    rows: '10.9',
    whole: { acts: [...send('head', 'half', 'rest'), { bytes: `HTTP/1.1 200 ${secretText}` }], is: answer },
  },
  {
    name: 'rst-after-body',
    rows: '10.9',
    whole: { acts: [...send('head', 'half', 'rest'), { close: 'rst' }], is: answer },
  },
]

/** Every way in which a backend can fail, with the class that the contract gives it. */
export const upstreamFaults: readonly UpstreamFault[] = [
  ...connections,
  ...rejections,
  ...beforeContent,
  ...afterContent,
]

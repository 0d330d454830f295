import type { Mode } from './upstream-cells.ts'

/** What the client does, in order. At the end it reads what it still expects, and closes. */
export type ClientAct =
  /** Its requests, or a part of one: the first half of the head, the head and half of the body, or what is left of it. */
  | { readonly send: 'half-head' | 'half-body' | 'rest' | 'request' | 'two-requests' }
  | { readonly waitMs: number }
  /** Until the backend at that place has been called, or until the client has read content, or all answers. */
  | { readonly until: number | 'content' | 'answers' }
  | { readonly close: 'both' | 'sending' }
  | { readonly pauseMs: number }

/** How the backends behave: the first ones as listed, all others healthy. */
export type BackendBehavior = 'healthy' | 'silent' | 'down' | 'paused' | 'slow'

/** What the contract says that a fault is. */
type ClientClass =
  /** Nothing is admitted, nothing is called; `error` is the answer, if the client can read one. */
  | { readonly is: 'unadmitted'; readonly error?: { readonly status: number; readonly code: string } }
  /** The client left after dispatch: charged, and the call is aborted (contract 6.7, 9.10). */
  | { readonly is: 'abandoned'; readonly attempts: readonly string[] }
  | { readonly is: 'served'; readonly times: number }
  /** The client's own deadline passed (contract 6.7, 6.19). */
  | { readonly is: 'late' }

export interface ClientFault {
  readonly name: string
  readonly rows: string
  readonly modes?: readonly Mode[]
  readonly backends: readonly BackendBehavior[]
  /** What differs from a correct request. */
  readonly request?: {
    readonly key?: 'none'
    readonly model?: string
    readonly body?: string
    readonly headers?: string
  }
  readonly acts: readonly ClientAct[]
  readonly is: ClientClass
}

const leave = { close: 'both' } as const
const request = { send: 'request' } as const
const read = { until: 'answers' } as const
const once: ClientClass = { is: 'served', times: 1 }
const abandoned = (...attempts: readonly string[]): ClientClass => ({ is: 'abandoned', attempts })
const refused = (status: number, code: string): ClientClass => ({ is: 'unadmitted', error: { status, code } })
const streams = ['stream'] as const
const wholes = ['whole'] as const

/** Every way in which a client can fail, by phase, with the class that the contract gives it. */
export const clientFaults: readonly ClientFault[] = [
  // Before admission.
  {
    name: 'leaves-in-head',
    rows: '6.1',
    backends: ['healthy'],
    acts: [{ send: 'half-head' }, { waitMs: 30 }, leave],
    is: { is: 'unadmitted' },
  },
  {
    name: 'leaves-in-body',
    rows: '6.1',
    backends: ['healthy'],
    acts: [{ send: 'half-body' }, { waitMs: 30 }, leave],
    is: { is: 'unadmitted' },
  },
  {
    name: 'ends-in-body',
    rows: '6.1, 4.19',
    backends: ['healthy'],
    acts: [{ send: 'half-body' }, { close: 'sending' }, read],
    is: refused(400, 'invalid_request'),
  },
  {
    name: 'bad-json',
    rows: '6.1, 4.18',
    backends: ['healthy'],
    request: { body: '{"model":' },
    acts: [request, read],
    is: refused(400, 'invalid_json'),
  },
  {
    name: 'unknown-model',
    rows: '6.1, 4.38',
    backends: ['healthy'],
    request: { model: 'matrix/none' },
    acts: [request, read],
    is: refused(404, 'model_not_found'),
  },
  {
    name: 'no-key',
    rows: '6.1, 4.12',
    backends: ['healthy'],
    request: { key: 'none' },
    acts: [request, read],
    is: refused(401, 'key_missing'),
  },
  {
    name: 'filtered-out',
    rows: '7.25, 4.57',
    backends: ['healthy'],
    request: { body: '"routing":{"regions":["eu"]}' },
    acts: [request, read],
    is: refused(400, 'no_backend_matches'),
  },
  // While the backends have not answered.
  {
    name: 'leaves-while-waiting',
    rows: '6.7, 9.10',
    backends: ['silent'],
    acts: [request, { until: 0 }, leave],
    is: abandoned('0 cancelled'),
  },
  {
    name: 'leaves-after-failover',
    rows: '6.7, 9.10',
    backends: ['down', 'silent'],
    acts: [request, { until: 1 }, leave],
    is: abandoned('0 server_error', '1 cancelled'),
  },
  {
    name: 'leaves-in-third',
    rows: '6.7, 9.10',
    backends: ['down', 'down', 'silent'],
    acts: [request, { until: 2 }, leave],
    is: abandoned('0 server_error', '1 server_error', '2 cancelled'),
  },
  {
    name: 'leaves-in-whole',
    rows: '6.7, 9.10',
    modes: wholes,
    backends: ['paused'],
    acts: [request, { until: 0 }, { waitMs: 60 }, leave],
    is: abandoned('0 cancelled'),
  },
  {
    name: 'deadline',
    rows: '6.7, 6.19, 4.54',
    backends: ['silent'],
    request: { headers: 'x-stainless-timeout: 1\r\n' },
    acts: [request, read],
    is: { is: 'late' },
  },
  { name: 'ends-at-once', rows: '9.11', backends: ['slow'], acts: [request, { close: 'sending' }, read], is: once },
  {
    name: 'ends-while-waiting',
    rows: '9.11',
    backends: ['slow'],
    acts: [request, { until: 0 }, { close: 'sending' }, read],
    is: once,
  },
  // After content.
  {
    name: 'leaves-after-content',
    rows: '6.7, 9.10',
    modes: streams,
    backends: ['paused'],
    acts: [request, { until: 'content' }, leave],
    is: abandoned('0 answered'),
  },
  {
    name: 'leaves-after-second',
    rows: '6.7, 9.10',
    modes: streams,
    backends: ['down', 'paused'],
    acts: [request, { until: 'content' }, leave],
    is: abandoned('0 server_error', '1 answered'),
  },
  {
    name: 'ends-after-content',
    rows: '9.11, 6.7',
    modes: streams,
    backends: ['paused'],
    acts: [request, { until: 'content' }, { close: 'sending' }, { waitMs: 30 }, leave],
    is: abandoned('0 answered'),
  },
  // None of these changes the answer.
  { name: 'none', rows: '6.4', backends: ['healthy'], acts: [request, read], is: once },
  { name: 'leaves-after-answer', rows: '6.4', backends: ['healthy'], acts: [request, read, leave], is: once },
  {
    name: 'slow-sender',
    rows: '6.4',
    backends: ['healthy'],
    acts: [{ send: 'half-head' }, { waitMs: 30 }, { send: 'rest' }, read],
    is: once,
  },
  {
    name: 'slow-body',
    rows: '6.4',
    backends: ['healthy'],
    acts: [{ send: 'half-body' }, { waitMs: 30 }, { send: 'rest' }, read],
    is: once,
  },
  { name: 'slow-reader', rows: '9.12', backends: ['slow'], acts: [request, { pauseMs: 400 }, read], is: once },
  {
    name: 'pipelined',
    rows: '6.4',
    backends: ['slow'],
    acts: [{ send: 'two-requests' }, read],
    is: { is: 'served', times: 2 },
  },
]

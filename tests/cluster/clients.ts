import { setTimeout as sleep } from 'node:timers/promises'
import { holdsAnswer, RawConnection, writePost } from '../faults/raw-client.ts'

/** One request of a client. Times are epoch milliseconds of this machine. */
export interface Seen {
  readonly accountId: string
  readonly keyId: string
  readonly sentMs: number
  readonly gotMs: number
  /** 0 if no answer arrived. */
  readonly status: number
  /** The error code; empty if there is none, as in HAProxy's own errors. */
  readonly code: string
  /** The request's ID, if the service answered. */
  readonly id: string
  /** Whether content arrived. */
  readonly isDelivered: boolean
  /** Seconds; 0 if there was none. */
  readonly retryAfter: number
}

export interface KeyInUse {
  readonly accountId: string
  readonly keyId: string
  readonly key: string
}

export interface ClientOptions {
  readonly port: number
  readonly number: number
  readonly random: () => number
  /** The mean time between an answer and the next request, in milliseconds. */
  readonly thinkMs: number
  /** The key to use now. */
  readonly key: () => KeyInUse
  readonly onSeen: (seen: Seen) => void
}

/** The wait of a client that got no usable answer and no `Retry-After`. */
const defaultWaitMs = 1_000
/** The wait of a client whose month is used up, or whose key was rejected. */
const longWaitMs = 4_000

/** Sends requests one after another until it is aborted, waits as long as each answer tells it, and keeps its connection. */
export async function runClient(options: ClientOptions, over: AbortSignal): Promise<void> {
  const { port, number, random, thinkMs, onSeen } = options
  // A loopback address of its own, so that limits of single addresses see many callers.
  const address = `127.0.${1 + Math.floor(number / 250)}.${1 + (number % 250)}`
  let connection = new RawConnection(port, address)
  const wait = (ms: number): Promise<unknown> => sleep(ms, undefined, { signal: over }).catch(() => undefined)
  await wait(random() * thinkMs)
  while (!over.aborted) {
    if (connection.closed) connection = new RawConnection(port, address)
    const seen = await askOnce(connection, options)
    onSeen(seen)
    await wait(waitAfter(seen, -Math.log(1 - random()) * thinkMs))
  }
  connection.leave()
}

function waitAfter({ status, code, retryAfter }: Seen, thinkMs: number): number {
  if (status === 200) return thinkMs
  if (code === 'insufficient_quota' || status === 401) return longWaitMs
  return retryAfter > 0 ? retryAfter * 1_000 : defaultWaitMs
}

async function askOnce(connection: RawConnection, { random, key: keyNow }: ClientOptions): Promise<Seen> {
  const { accountId, keyId, key } = keyNow()
  const stream = random() < 0.5
  const body = { model: 'svc-router/frontier', stream, messages: [{ role: 'user', content: 'Hello!' }] }
  const sentMs = Date.now()
  const answer = await connection.ask(writePost('/chat/completions', key, body))
  return {
    accountId,
    keyId,
    sentMs,
    gotMs: Date.now(),
    status: answer.status,
    code: answer.status === 200 ? '' : (/"code":"([a-z_0-9]+)"/.exec(answer.body)?.[1] ?? ''),
    id: answer.headers['x-request-id'] ?? '',
    isDelivered: holdsAnswer(answer),
    retryAfter: Number(answer.headers['retry-after'] ?? 0),
  }
}

import { rootOf } from '../../../domain/client-config.ts'
import { isWellFormedKey } from '../../../domain/keys.ts'
import type { Secret } from '../../../runtime/secret.ts'
import { ask } from './ask.ts'
import { isOurs, type Outcome } from './read-answer.ts'

/** The time limit for all checks, so that the program ends within 3 s. */
const totalMs = 2_300
/** At most this much startup time is subtracted from the limit, so that requests have enough time. */
const longestStartMs = 1_200
/** A second check has the remaining time, but at least this. */
const shortestLookMs = 300
/** The timeout of one real request, enough for a reasoning model. */
const askLimitMs = 60_000
const askTokens = 16

/** What to diagnose: a service, with the settings of one client. */
export interface Subject {
  /** As given. */
  readonly baseUrl: string
  readonly key: Secret | undefined
  readonly keyVariable: string
  readonly model: string
  readonly userAgent: string
}

/** The results of the checks. Undefined if a check was not made. */
export interface Observations {
  /** `GET {base}/models` with the key. */
  readonly models: Outcome
  readonly catalog?: Outcome
  readonly pricing?: Outcome
  readonly ready?: Outcome
  readonly stream?: Outcome
  /** Another base URL at which svc-router answers, if it does not answer at the given one. */
  readonly elsewhere?: string
  /** The result of one real request, if requested. */
  readonly asked?: Outcome
}

/** The time left for checks since this process started, because users wait for the startup too. */
function timeLeftMs(): number {
  return totalMs - Math.min(longestStartMs, performance.now())
}

/** Runs all checks in parallel, within 3 s of the process start and without a paid request (contract 33.5). */
export async function inspectService(subject: Subject): Promise<Observations> {
  const root = rootOf(subject.baseUrl)
  const withinMs = timeLeftMs()
  const see = (url: string): Promise<Outcome> => ask(url, { headers: headersFor(subject), withinMs })
  const [reach, catalog, pricing, ready, stream] = await Promise.all([
    fetchModels(subject),
    see(`${root}/model-catalog`),
    see(`${root}/pricing`),
    see(`${root}/ready`),
    see(`${root}/health?stream`),
  ])
  return { ...reach, catalog, pricing, ready, stream }
}

/** Checks only whether the service answers with this key, within the same time limit. */
export async function fetchModels(subject: Subject): Promise<Observations> {
  const { origin } = new URL(subject.baseUrl)
  const headers = headersFor(subject, subject.key)
  const usual = `${origin}/v1`
  const beganMs = performance.now()
  const withinMs = timeLeftMs()
  const [models, atUsual] = await Promise.all([
    ask(`${subject.baseUrl}/models`, { headers, withinMs }),
    // Without the key, which may not be meant for that URL.
    subject.baseUrl === usual ? undefined : ask(`${usual}/models`, { headers: headersFor(subject), withinMs }),
  ])
  if (isOurs(models) && !isMissing(models)) return { models }
  if (isOurs(atUsual)) return { models, elsewhere: usual }
  const leftMs = Math.max(shortestLookMs, withinMs - (performance.now() - beganMs))
  const elsewhere = mayBeOtherScheme(models) ? await lookForOtherScheme(subject, leftMs) : undefined
  return elsewhere === undefined ? { models } : { models, elsewhere }
}

/** Sends one small streaming request, which is counted like any other. */
export function sendTestRequest(subject: Subject): Promise<Outcome> {
  const messages = [{ role: 'user', content: 'Say hello.' }]
  return ask(`${subject.baseUrl}/chat/completions`, {
    headers: headersFor(subject, subject.key),
    withinMs: askLimitMs,
    body: JSON.stringify({ model: subject.model, messages, stream: true, max_tokens: askTokens }),
  })
}

/**
 * Whether to try the other scheme: the server closed the connection, spoke no TLS, or is not ours. After a timeout,
 * another try would only time out again.
 */
function mayBeOtherScheme(outcome: Outcome): boolean {
  if (outcome.kind === 'answer') return !isOurs(outcome)
  return ['plain', 'closed', 'refused'].includes(outcome.reason)
}

async function lookForOtherScheme(subject: Subject, withinMs: number): Promise<string | undefined> {
  const { protocol, host, pathname } = new URL(subject.baseUrl)
  const other = `${protocol === 'https:' ? 'http:' : 'https:'}//${host}`
  const bases = pathname === '/' ? [`${other}/v1`] : [`${other}${pathname}`, `${other}/v1`]
  const outcomes = await Promise.all(
    bases.map((base) => ask(`${base}/models`, { headers: headersFor(subject), withinMs })),
  )
  return bases.find((_, index) => {
    const outcome = outcomes[index]
    // An untrusted certificate still proves that the server speaks https.
    const isCertificate = outcome?.kind === 'silence' && outcome.reason === 'certificate'
    return isCertificate || (isOurs(outcome) && !isMissing(outcome))
  })
}

function isMissing(outcome: Outcome | undefined): boolean {
  return outcome?.kind === 'answer' && outcome.status === 404
}

/** Sends only keys in our format; any other key may belong to another service. */
function headersFor({ userAgent }: Subject, key?: Secret): Record<string, string> {
  const isSendable = key !== undefined && isWellFormedKey(key.reveal())
  return {
    accept: 'application/json',
    'user-agent': userAgent,
    ...(isSendable ? { authorization: `Bearer ${key.reveal()}` } : {}),
  }
}

import type { Secret } from '../../domain/secret.ts'
import { isWellFormedKey } from '../../domain/keys.ts'
import { rootOf } from '../../domain/wiring.ts'
import { ask } from './ask.ts'
import { isOurs, type Outcome } from './read-answer.ts'

/** With what the program needs to end, below the 3 s that a person waits. */
const totalMs = 2_300
/** A start that took longer than this is not made up for: an answer needs some time too. */
const longestStartMs = 1_200
/** A second look has what the first one left, and at least this. */
const shortestLookMs = 300
/** One real request may take as long as a model thinks. */
const askLimitMs = 60_000
const askTokens = 16

/** What is examined: a service with the settings of one client. */
export interface Subject {
  /** As it was given. */
  readonly baseUrl: string
  readonly key: Secret | undefined
  readonly keyVariable: string
  readonly model: string
  readonly userAgent: string
}

/** What was seen. What was not looked at is undefined. */
export interface Sight {
  /** `GET {base}/models` with the key. */
  readonly models: Outcome
  readonly catalog?: Outcome
  readonly pricing?: Outcome
  readonly ready?: Outcome
  readonly stream?: Outcome
  /** Another base URL at which a svc-router answers, where none does at the given one. */
  readonly elsewhere?: string
  /** One real request, where it was asked for. */
  readonly asked?: Outcome
}

/** The time for looking: what is left since this process began, because its start is waited for too. */
function timeLeftMs(): number {
  return totalMs - Math.min(longestStartMs, performance.now())
}

/** Looks at everything at once, within 3 s of the start of the process and without a paid request. */
export async function look(subject: Subject): Promise<Sight> {
  const root = rootOf(subject.baseUrl)
  const withinMs = timeLeftMs()
  const see = (url: string): Promise<Outcome> => ask(url, { headers: headersFor(subject), withinMs })
  const [reach, catalog, pricing, ready, stream] = await Promise.all([
    lookForModels(subject),
    see(`${root}/model-catalog`),
    see(`${root}/pricing`),
    see(`${root}/ready`),
    see(`${root}/health?stream`),
  ])
  return { ...reach, catalog, pricing, ready, stream }
}

/** Looks only whether the service answers with this key, within the same time. */
export async function lookForModels(subject: Subject): Promise<Sight> {
  const { origin } = new URL(subject.baseUrl)
  const headers = headersFor(subject, subject.key)
  const usual = `${origin}/v1`
  const beganMs = performance.now()
  const withinMs = timeLeftMs()
  const [models, atUsual] = await Promise.all([
    ask(`${subject.baseUrl}/models`, { headers, withinMs }),
    // Without the key: it was not said that it belongs there.
    subject.baseUrl === usual ? undefined : ask(`${usual}/models`, { headers: headersFor(subject), withinMs }),
  ])
  if (isOurs(models) && !isMissing(models)) return { models }
  if (isOurs(atUsual)) return { models, elsewhere: usual }
  const leftMs = Math.max(shortestLookMs, withinMs - (performance.now() - beganMs))
  const elsewhere = mayBeOtherScheme(models) ? await lookForOtherScheme(subject, leftMs) : undefined
  return elsewhere === undefined ? { models } : { models, elsewhere }
}

/** Sends one small streamed request, which is counted like any other. */
export function askForReal(subject: Subject): Promise<Outcome> {
  const messages = [{ role: 'user', content: 'Say hello.' }]
  return ask(`${subject.baseUrl}/chat/completions`, {
    headers: headersFor(subject, subject.key),
    withinMs: askLimitMs,
    body: JSON.stringify({ model: subject.model, messages, stream: true, max_tokens: askTokens }),
  })
}

/** What hung up, spoke no TLS, or did not understand, may understand the other scheme. A timeout would only be one more. */
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
    // With a certificate that is not trusted it is at least clear which of the two is spoken.
    const isCertificate = outcome?.kind === 'silence' && outcome.reason === 'certificate'
    return isCertificate || (isOurs(outcome) && !isMissing(outcome))
  })
}

function isMissing(outcome: Outcome | undefined): boolean {
  return outcome?.kind === 'answer' && outcome.status === 404
}

/** A key that cannot be one of ours is not sent: it may be another service's. */
function headersFor({ userAgent }: Subject, key?: Secret): Record<string, string> {
  const isSendable = key !== undefined && isWellFormedKey(key.reveal())
  return {
    accept: 'application/json',
    'user-agent': userAgent,
    ...(isSendable ? { authorization: `Bearer ${key.reveal()}` } : {}),
  }
}

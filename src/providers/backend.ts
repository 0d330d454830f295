import { createHash } from 'node:crypto'
import type { CloudKind } from '../domain/cloud-credentials.ts'
import type { FormatId } from '../domain/format-id.ts'
import type { BackendFacts } from '../domain/model-facts.ts'
import type { ModelPrice } from '../domain/model-price.ts'
import { UpstreamError } from '../domain/upstream.ts'
import type { Dialect } from '../formats/format.ts'
import { formatById } from '../formats/formats.ts'
import { reasoningFields, withCompanions } from '../formats/rejections/optional-fields.ts'
import type { Backend, BackendTimeouts, UpstreamCall, UpstreamListener, UpstreamRequest } from '../gateway/ports.ts'
import type { Secret } from '../runtime/secret.ts'
import { canCarryCredential } from './cloud-location.ts'
import { Call } from './http/call.ts'
import type { CallOptions } from './http/call.ts'
import { endpointOf, type Endpoint } from './http/endpoint.ts'
import { SignedCall } from './http/signed-call.ts'
import type { UpstreamPools } from './http/upstream-pools.ts'

const longestCredential = 8192
/** Long enough to be unique per issuer, too short to be mistaken for a credential. */
const issuerCharacters = 12

/** The properties of a backend. @see Backend */
export interface BackendSpec {
  readonly id: string
  readonly failureDomain: string
  readonly format: FormatId
  readonly model: string
  readonly simulated: boolean
  /** @see Backend.isManaged */
  readonly isManaged?: boolean | undefined
  /** @see Backend.owner */
  readonly owner?: string | undefined
  readonly facts?: BackendFacts | undefined
  /** @see Backend.price */
  readonly price?: ModelPrice | undefined
  readonly timeouts: BackendTimeouts
  readonly dialect: Dialect
  readonly baseUrl: string
  /** The header that carries the credential; `authorization` sends `Bearer`. */
  readonly authHeader: string | null
  readonly credential?: Secret | undefined
  /** Headers sent with every request: lowercase name, and value. */
  readonly fixedHeaders?: Readonly<Record<string, string>> | undefined
  /** The kind of credential that signs each request; a credential of another kind is sent in the header. */
  readonly signing?: CloudKind | undefined
  /**
   * Whether only public addresses may be reached: for base URLs that accounts configure on a service run by others.
   * Default false.
   */
  readonly publicOnly?: boolean
}

/** A backend without the details of how it is reached. */
export type DescribedBackend = Omit<
  BackendSpec,
  'baseUrl' | 'authHeader' | 'credential' | 'fixedHeaders' | 'signing' | 'publicOnly'
>

/**
 * Creates a backend on the connection pools: the only place that builds upstream requests. What is sent is an
 * allow-list (contract 11.12); of a client's headers only those that its format lists are forwarded, and only if the
 * provider uses the same format. @throws TypeError for a base URL, header name, or credential that cannot be sent
 */
export function createBackend(spec: BackendSpec, pools: UpstreamPools): Backend {
  const format = formatById(spec.format)
  const [whole, streamed] = [false, true].map((stream) =>
    endpointOf(spec.baseUrl, format.upstreamPath(spec.model, stream)),
  ) as [Endpoint, Endpoint]
  const credential = spec.credential?.reveal()
  const authenticator =
    spec.signing === undefined || credential === undefined
      ? undefined
      : pools.authenticators.open(spec.signing, credential)
  const sent = authenticator === undefined ? credential : undefined
  const { host } = new URL(whole.origin)
  const headers = requestHeaders(pools.userAgent, spec, sent)
  const optionsFor = ({ path }: Endpoint): CallOptions => ({
    clock: pools.clock,
    onBug: pools.onBug,
    head: `POST ${path} HTTP/1.1\r\nhost: ${host}\r\n${headers}`,
  })
  const callOptions = { whole: optionsFor(whole), streamed: optionsFor(streamed) }
  const key = {
    origin: whole.origin,
    credential: identityOf(spec.signing ?? spec.authHeader, credential),
    connectMs: spec.timeouts.connectMs,
    publicOnly: spec.publicOnly ?? false,
  }
  const issuer = issuerOf(spec, format.sealsByModel === true, whole.origin, credential)
  let pool = pools.pool(key)
  const open = (request: UpstreamRequest, listener: UpstreamListener): UpstreamCall => {
    if (pool.retired) pool = pools.pool(key)
    const call = new Call(request.stream ? callOptions.streamed : callOptions.whole, pool, request, listener)
    if (pool.retired) call.refuse()
    else {
      pools.touch(pool)
      pool.take(call)
    }
    return call
  }
  if (authenticator === undefined) return { ...describe(spec), issuer, call: open }
  return {
    ...describe(spec),
    issuer,
    call(request, listener) {
      const { body, stream, headers: passed = [] } = request
      const openSigned = (signed: readonly string[]): UpstreamCall =>
        open({ ...request, headers: [...passed, ...signed] }, listener)
      const signed = authenticator.headersFor({ ...(stream ? streamed : whole), body })
      if (!(signed instanceof Promise)) return openSigned(signed)
      return new SignedCall({ headers: signed, open: openSigned, listener, onBug: pools.onBug })
    },
  }
}

/**
 * A backend that is known but unusable, such as one whose credential cannot be decrypted: each call fails with the
 * error class `outcome`, so that failover continues and the attempt is recorded.
 */
export function createUnusableBackend(
  spec: DescribedBackend,
  outcome: 'rejected_credentials' | 'unreachable',
): Backend {
  return {
    ...describe(spec),
    issuer: digestOf('unusable', spec.id),
    call(_request, listener) {
      let isAborted = false
      queueMicrotask(() => {
        if (!isAborted) listener.onError(new UpstreamError(outcome))
      })
      return {
        isSent: false,
        pause() {},
        resume() {},
        abort() {
          isAborted = true
        },
      }
    },
  }
}

function describe(spec: DescribedBackend): Omit<Backend, 'call' | 'issuer'> {
  return {
    id: spec.id,
    failureDomain: spec.failureDomain,
    format: spec.format,
    model: spec.model,
    simulated: spec.simulated,
    owner: spec.owner,
    isManaged: spec.isManaged,
    ...spec.facts,
    price: spec.price,
    timeouts: spec.timeouts,
    dialect: withoutReasoning(spec),
  }
}

/** Models declared as not reasoning get no reasoning fields, because servers reject them. */
function withoutReasoning({ dialect, facts }: DescribedBackend): Dialect {
  if (facts?.capabilities?.reasoning !== false) return dialect
  return { ...dialect, refusedFields: [...dialect.refusedFields, ...withCompanions(reasoningFields)] }
}

function requestHeaders(userAgent: string, spec: BackendSpec, credential: string | undefined): string {
  const { authHeader, fixedHeaders = {} } = spec
  const headers = [
    'connection: keep-alive',
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    'accept-encoding: identity',
    `user-agent: ${userAgent}`,
    ...Object.entries(fixedHeaders).map(([name, value]) => `${name}: ${value}`),
  ]
  if (credential !== undefined && authHeader !== null) {
    const name = authHeader.toLowerCase()
    if (!canCarryCredential(name)) throw new TypeError('The credential cannot be sent in that header.')
    if (!/^[\x21-\x7e]+$/.test(credential) || credential.length > longestCredential) {
      throw new TypeError('The credential has characters that cannot be sent in a header.')
    }
    headers.push(`${name}: ${name === 'authorization' ? 'Bearer ' : ''}${credential}`)
  }
  return headers.map((line) => `${line}\r\n`).join('')
}

/** `how` is the header that carries the credential, or the kind of signature. */
function identityOf(how: string | null, credential: string | undefined): string {
  if (credential === undefined || how === null) return ''
  return createHash('sha256').update(`${how}\n${credential}`).digest('base64url')
}

/**
 * Most providers encrypt reasoning per organization, whichever of its models produced it: the same endpoint,
 * credential, and format can read it. An endpoint without a credential is identified by our own name for it, which is
 * public anyway. A digest reveals neither (contract 11.9).
 */
function issuerOf(
  { format, id, model }: BackendSpec,
  byModel: boolean,
  origin: string,
  credential: string | undefined,
): string {
  if (credential === undefined) return digestOf('backend', format, id)
  return digestOf('credential', format, origin, credential, ...(byModel ? [model] : []))
}

function digestOf(...parts: readonly string[]): string {
  const digest = createHash('sha256')
    .update(`svc-router issuer\n${JSON.stringify(parts)}`)
    .digest('base64url')
  return digest.slice(0, issuerCharacters)
}

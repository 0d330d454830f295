import { createHash, createHmac } from 'node:crypto'
import type { AwsKey } from '../../domain/cloud-credentials.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { AuthenticatedRequest, Authenticator } from './authenticator.ts'

/**
 * `bedrock-mantle.REGION.api.aws`, `bedrock-runtime.REGION.amazonaws.com`: host names contain the service and region to
 * sign for.
 */
const awsHost = /^(bedrock(?:-[a-z]+)*)\.([a-z0-9-]+)\.(?:api\.aws|amazonaws\.com(?:\.cn)?)$/
const mantle = 'bedrock-mantle'
/** The signing name of every endpoint but the newest. */
const bedrock = 'bedrock'
const jsonType = 'application/json'

/**
 * Signs each request with an AWS key (Signature Version 4, contract 21.7). The library is loaded on the first request.
 */
export function createAwsAuthenticator(key: AwsKey, clock: Clock): Authenticator {
  const { accessKeyId, secretAccessKey, sessionToken } = key
  const credentials = { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) }
  return {
    async headersFor({ origin, path, body }: AuthenticatedRequest): Promise<readonly string[]> {
      const url = new URL(path, origin)
      const [, endpoint, region = key.region] = awsHost.exec(url.hostname) ?? []
      // The key has no region and the host names none: nothing can be signed.
      if (region === undefined) throw new UpstreamError('rejected_credentials')
      const { SignatureV4 } = await import('@smithy/signature-v4')
      const service = endpoint === mantle ? mantle : bedrock
      const signer = new SignatureV4({ credentials, region, service, sha256: Sha256 })
      const signed = await signer.sign(
        {
          method: 'POST',
          protocol: url.protocol,
          hostname: url.hostname,
          path: url.pathname,
          query: Object.fromEntries(url.searchParams),
          headers: { host: url.host, 'content-type': jsonType },
          body,
        },
        { signingDate: new Date(clock.nowMs()) },
      )
      return Object.entries(signed.headers)
        .filter(([name]) => name !== 'host' && name !== 'content-type')
        .flat()
    },
  }
}

type Bytes = string | ArrayBuffer | ArrayBufferView

/** SHA-256 and HMAC in the form that the library expects, on top of Node's own. */
class Sha256 {
  readonly #hash: ReturnType<typeof createHash> | ReturnType<typeof createHmac>

  constructor(secret?: Bytes) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', viewOf(secret))
  }

  update(data: Bytes): void {
    this.#hash.update(viewOf(data))
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(this.#hash.digest()))
  }
}

function viewOf(data: Bytes): string | Uint8Array {
  if (typeof data === 'string') return data
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  return new Uint8Array(data)
}

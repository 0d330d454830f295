import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

interface SigningKey {
  readonly id: string
  readonly pem: string
  readonly privateKey: KeyObject
}

/** A simulation of GitHub's secret scanning: it serves public keys and signs reports, with generated keys. */
export class ScanningDouble {
  readonly #server: Server
  keys: SigningKey[] = [makeKey('first')]
  /** The answer of the endpoint, if it is not the keys. */
  status = 200
  fetches: { readonly url: string; readonly agent: string; readonly authorization: string | undefined }[] = []

  private constructor() {
    this.#server = createServer(({ url = '', headers }, response) => {
      this.fetches.push({ url, agent: headers['user-agent'] ?? '', authorization: headers.authorization })
      const public_keys = this.keys.map(({ id, pem }) => ({ key_identifier: id, key: pem, is_current: true }))
      response.writeHead(this.status, { 'content-type': 'application/json' }).end(JSON.stringify({ public_keys }))
    })
  }

  static async start(): Promise<ScanningDouble> {
    const double = new ScanningDouble()
    await new Promise<void>((resolve) => double.#server.listen(0, '127.0.0.1', resolve))
    return double
  }

  get keysUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/meta/public_keys/secret_scanning`
  }

  rotate(id: string): void {
    this.keys = [makeKey(id)]
  }

  /** Sends a report like GitHub. `change` tampers with it in transit. */
  async report(
    appUrl: string,
    matches: unknown,
    change: { body?: string; keyId?: string; signature?: string; headers?: Record<string, string> } = {},
  ): Promise<Response> {
    const body = JSON.stringify(matches)
    const [key] = this.keys
    if (key === undefined) throw new Error('the double has no key')
    const signature = sign('sha256', Buffer.from(body), key.privateKey).toString('base64')
    return fetch(`${appUrl}/leaked-keys/github`, {
      method: 'POST',
      headers: change.headers ?? {
        'content-type': 'application/json',
        'Github-Public-Key-Identifier': change.keyId ?? key.id,
        'Github-Public-Key-Signature': change.signature ?? signature,
      },
      body: change.body ?? body,
    })
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}

function makeKey(id: string): SigningKey {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { id, pem: publicKey.export({ type: 'spki', format: 'pem' }), privateKey }
}

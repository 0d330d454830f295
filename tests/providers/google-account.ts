import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import type { RequestListener } from 'node:http'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

/** The key file of a made-up service account, with a key generated for this run. */
export const accountFile = {
  type: 'service_account',
  project_id: 'made-up-project',
  private_key_id: '0000111122223333444455556666777788889999',
  private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  client_email: 'tester@made-up-project.iam.gserviceaccount.com',
  client_id: '100000000000000000001',
  auth_uri: 'https://accounts.google.com/o/oauth2/auth',
  token_uri: 'https://oauth2.googleapis.com/token',
  universe_domain: 'googleapis.com',
}

/** A token endpoint as Google documents it: it exchanges a signed assertion for an access token. */
export class TokenEndpoint {
  readonly claims: Record<string, unknown>[] = []
  /** How it answers the next requests instead of granting a token. */
  refuse: { readonly status: number; readonly body: object } | 'silence' | undefined
  lifeSeconds = 3599

  readonly listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (this.refuse === 'silence') return
      const form = new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
      if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') throw new Error('another grant')
      this.claims.push(claimsOf(form.get('assertion') ?? ''))
      const refusal = this.refuse
      const granted = {
        access_token: `ya29.made-up-token-${this.claims.length}`,
        expires_in: this.lifeSeconds,
        token_type: 'Bearer',
      }
      response.writeHead(refusal?.status ?? 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(refusal?.body ?? granted))
    })
  }
}

function claimsOf(assertion: string): Record<string, unknown> {
  const [head = '', claims = '', signature = ''] = assertion.split('.')
  const isSigned = verify(
    'sha256',
    Buffer.from(`${head}.${claims}`),
    createPublicKey(publicKey.export({ type: 'spki', format: 'pem' })),
    Buffer.from(signature, 'base64url'),
  )
  if (!isSigned) throw new Error('the assertion is not signed with the key of the account')
  return JSON.parse(Buffer.from(claims, 'base64url').toString('utf8')) as Record<string, unknown>
}

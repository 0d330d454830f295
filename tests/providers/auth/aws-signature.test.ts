import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { UpstreamError } from '../../../src/domain/upstream.ts'
import { createAwsAuthenticator } from '../../../src/providers/auth/aws-signature.ts'
import { uuidOf } from '../../../src/runtime/ids.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { ManualClock } from '../../gateway/manual-clock.ts'
import { expectedAuthorization, type SeenRequest } from '../aws-checker.ts'
import { bugs, openBackend, openPools, record, run, serveHttp, simulate, until } from '../support.ts'

const secretAccessKey = 'made/up+secret0made/up+secret0made/up+se'
const key = { accessKeyId: 'AKIAMADEUP0MADEUP000', secretAccessKey, region: 'eu-central-1' }
const signedFor = (credential: object) => ({
  credential: new Secret(JSON.stringify(credential)),
  signing: 'aws' as const,
})

async function headersOf(origin: string, given: Parameters<typeof createAwsAuthenticator>[0] = key) {
  const flat = await createAwsAuthenticator(given, new ManualClock()).headersFor({ origin, path: '/v1/x', body: '{}' })
  return Object.fromEntries(
    Array.from({ length: flat.length / 2 }, (_, index) => [flat[index * 2]!, flat[index * 2 + 1]!]),
  ) as Record<string, string>
}

/** A server that records its requests and answers each with success. */
async function watch(seen: SeenRequest[]) {
  return serveHttp((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      seen.push({
        method: request.method!,
        path: request.url!,
        headers: request.headers as Record<string, string>,
        body: Buffer.concat(chunks).toString('utf8'),
      })
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
}

test('the checker in these tests agrees with AWS’s own example', () => {
  const authorization =
    'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'
  const headers = { host: 'example.amazonaws.com', 'x-amz-date': '20150830T123600Z', authorization }
  const request = { method: 'GET', path: '/', headers, body: '' }
  expect(expectedAuthorization(request, 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY')).toBe(authorization)
})

describe('a backend with an AWS key', () => {
  test('each request’s path, query, host, type, and body are signed, with the session and the clock’s time', async () => {
    const seen: SeenRequest[] = []
    const { baseUrl } = await watch(seen)
    const clock = new ManualClock()
    const backend = openBackend(
      openPools({ clock }),
      `${baseUrl}?api-version=2 1&a=b`,
      signedFor({ ...key, sessionToken: 'made-up-session==' }),
    )
    expect((await run(backend, '{"a":"ü"}')).steps).toEqual(['head', 'data', 'end'])
    expect((await run(backend, Buffer.from('{"b":1}'), true)).steps).toEqual(['head', 'data', 'end'])
    expect(seen.map(({ body }) => body)).toEqual(['{"a":"ü"}', '{"b":1}'])
    for (const request of seen) {
      const { authorization } = request.headers
      expect(authorization).toBe(expectedAuthorization(request, secretAccessKey))
      expect(authorization).toContain('/20270115/eu-central-1/bedrock/aws4_request')
      expect(authorization).toMatch(
        /SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token,/,
      )
      expect(request.headers).toMatchObject({
        host: new URL(baseUrl).host,
        'x-amz-date': '20270115T080000Z',
        'x-amz-security-token': 'made-up-session==',
        'x-amz-content-sha256': createHash('sha256').update(request.body).digest('hex'),
        'x-request-id': uuidOf('req_test'),
      })
      expect(JSON.stringify(request)).not.toContain(secretAccessKey)
    }
  })

  test('the signature is for the service and region in the host name', async () => {
    const scopeOf = async (origin: string): Promise<string> =>
      /Credential=[^/]+\/\d+\/([^,]+)/.exec((await headersOf(origin))['authorization']!)![1]!
    expect(await scopeOf('https://bedrock-mantle.us-west-2.api.aws')).toBe('us-west-2/bedrock-mantle/aws4_request')
    expect(await scopeOf('https://bedrock-runtime.ap-south-1.amazonaws.com')).toBe('ap-south-1/bedrock/aws4_request')
    expect(await scopeOf('https://bedrock-runtime-fips.us-east-1.amazonaws.com')).toBe('us-east-1/bedrock/aws4_request')
    expect(await scopeOf('https://proxy.example.com')).toBe('eu-central-1/bedrock/aws4_request')
  })

  test('a key without a region is rejected for a host without one, and nothing is sent', async () => {
    const seen: SeenRequest[] = []
    const { baseUrl } = await watch(seen)
    const { region: _, ...regionless } = key
    const { error } = await run(openBackend(openPools(), baseUrl, signedFor(regionless)))
    expect(error?.outcome).toBe('rejected_credentials')
    expect(seen).toEqual([])
  })

  test('concurrent requests do not share headers', async () => {
    const seen: SeenRequest[] = []
    const { baseUrl } = await watch(seen)
    const backend = openBackend(openPools(), baseUrl, signedFor(key))
    await Promise.all(Array.from({ length: 20 }, (_, index) => run(backend, `{"n":${index}}`)))
    expect(seen).toHaveLength(20)
    for (const request of seen) {
      expect(request.headers['authorization']).toBe(expectedAuthorization(request, secretAccessKey))
    }
  })

  test('aborting a call before it is signed opens no connection', async () => {
    const seen: SeenRequest[] = []
    const { baseUrl, sockets } = await watch(seen)
    const recording = record(openBackend(openPools(), baseUrl, signedFor(key)))
    recording.call.abort()
    await run(openBackend(openPools(), baseUrl))
    expect([recording.steps, seen.length, sockets.size]).toEqual([[], 1, 1])
  })

  test('a call that is paused before it is signed stays paused', async () => {
    const provider = await simulate()
    const recording = record(
      openBackend(openPools(), provider.baseUrl, signedFor(key)),
      '{"model":"m","messages":[],"stream":true}',
      true,
    )
    recording.call.pause()
    await until(() => provider.counts().requests === 1)
    expect(recording.bytes).toBe(0)
    recording.call.resume()
    await recording.ended
    expect(recording.steps.at(-1)).toBe('end')
  })

  test('a Bedrock API key is sent unchanged', async () => {
    const seen: SeenRequest[] = []
    const { baseUrl } = await watch(seen)
    await run(openBackend(openPools(), baseUrl, { credential: new Secret('made-up-bedrock-key'), signing: 'aws' }))
    expect(seen[0]?.headers['authorization']).toBe('Bearer made-up-bedrock-key')
    expect(seen[0]?.headers).not.toHaveProperty('x-amz-date')
    const broken = { credential: new Secret('{"accessKeyId":"x"}'), signing: 'aws' as const }
    expect(() => openBackend(openPools(), baseUrl, broken)).toThrow(TypeError)
  })

  test('an exception in the signer is reported as a bug, and the call fails over', async () => {
    bugs.length = 0
    const pools = openPools()
    const bug = new Error('a bug')
    const broken = { ...pools, authenticators: { open: () => ({ headersFor: () => Promise.reject(bug) }) } }
    const { error } = await run(openBackend(broken, 'http://127.0.0.1:9/v1', signedFor(key)))
    expect((error as UpstreamError).outcome).toBe('unreachable')
    expect(bugs).toEqual([bug])
  })
})

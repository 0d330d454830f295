import { expect, test } from 'vitest'
import { getText, postJson } from '../../../src/providers/http/one-call.ts'
import { SkippingClock } from '../../../src/simulation/skipping-clock.ts'
import { openPools, serveHttp, until } from '../support.ts'

/** A server that answers with a status and a text, and remembers what it got. */
async function receiver(status: number, text = '', headers: Record<string, string> = {}) {
  const got: string[] = []
  const { baseUrl } = await serveHttp((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const { method, url, headers: sent } = request
      got.push(`${method} ${url} ${sent['content-type']} ${String(sent['x-one'])} ${body}`)
      response.writeHead(status, headers).end(text)
    })
  })
  return { url: new URL(baseUrl).origin, got }
}

const message = { headers: ['x-one: 1'], body: '{"a":1}' }
const send = (url: string) => postJson({ ...message, url }, openPools(), 'req_test')

test.each([200, 204, 299])('a message counts as received with status %i', async (status) => {
  const { url, got } = await receiver(status)
  await send(`${url}/in/?token=a%20b`)
  expect(got).toEqual(['POST /in/?token=a%20b application/json 1 {"a":1}'])
})

test.each([300, 302, 400, 500])('status %i is a failure', async (status) => {
  const { url } = await receiver(status)
  await expect(send(url)).rejects.toMatchObject({ outcome: 'server_error' })
})

test('a redirect is not followed', async () => {
  const other = await receiver(200)
  const { url, got } = await receiver(307, '', { location: other.url })
  await expect(send(url)).rejects.toMatchObject({ status: 307 })
  expect([got.length, other.got]).toEqual([1, []])
})

test('a receiver that does not answer is given up after 10 seconds', async () => {
  let arrived = 0
  const { baseUrl, sockets } = await serveHttp(() => (arrived += 1))
  const clock = new SkippingClock()
  const sent = postJson({ ...message, url: baseUrl }, openPools({ clock }), 'req_test')
  const failed = expect(sent).rejects.toMatchObject({ outcome: 'timeout' })
  await until(() => arrived === 1)
  await clock.skip(10_001)
  await failed
  await until(() => sockets.size === 0)
})

test('a text is fetched only with status 200, and only up to 256 KiB', async () => {
  const fetchFrom = async (status: number, text: string): Promise<string> =>
    getText((await receiver(status, text)).url, openPools(), 'req_test')
  expect(await fetchFrom(200, 'keys')).toBe('keys')
  await expect(fetchFrom(203, 'keys')).rejects.toMatchObject({ status: 203 })
  await expect(fetchFrom(200, 'k'.repeat(256 * 1024 + 1))).rejects.toMatchObject({ outcome: 'broken' })
})

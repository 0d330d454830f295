import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Api } from '../../src/http/api.ts'
import { ResponseSink } from '../../src/http/response-sink.ts'
import { serve, type Listening } from '../../src/http/serve.ts'
import { signals } from './signals.ts'

const limits = { headerBytes: 16_384, headerMs: 10_000, requestMs: 10_000, probeConnections: 1, connections: 10 }
const head = { upstream: 'a/b', model: 'b', simulated: false, retryCount: 0, signals }
const ask = 'GET / HTTP/1.1\r\nhost: localhost\r\n\r\n'

/** A server whose requests wait in `running`, and one client of it. */
async function start() {
  const running: ServerResponse[] = []
  const handle: Api['handle'] = (_request, response) => void running.push(response)
  // Only the parts of the API that these tests use.
  const parts = { handle, openRequests: 0, abortAll() {}, sockets: { drain() {}, terminate() {} } }
  const listening = await serve(() => parts as unknown as Api, { host: '127.0.0.1', port: 0, ...limits })
  const client = connect(listening.port, '127.0.0.1')
  const seen = { text: '', isClosed: false }
  client.on('data', (bytes) => (seen.text += bytes.toString()))
  client.on('end', () => (seen.isClosed = true))
  onTestFinished(async () => {
    client.destroy()
    await listening.drain(0)
  })
  client.write(ask)
  await vi.waitUntil(() => running.length === 1)
  return { listening, client, running, seen }
}

/** The head of an answer as models' answers have it, and the rest later. */
function begin(response: ServerResponse, stream: boolean): ResponseSink {
  const sink = new ResponseSink(response, 'req_1', () => 0, undefined)
  sink.open({ ...head, stream })
  return sink
}

const stops: Readonly<Record<string, (listening: Listening) => void>> = {
  'the signal': (listening) => listening.retire(),
  'the end of the delay': (listening) => {
    listening.retire()
    void listening.drain(5_000)
  },
}

test.each(
  Object.keys(stops).flatMap((stop) => [
    [stop, true],
    [stop, false],
  ]) as [string, boolean][],
)(
  'a request that runs at %s gets an answer that closes its connection (contract 32.6), streamed: %s',
  async (stop, stream) => {
    const { listening, running, seen } = await start()
    stops[stop]!(listening)
    begin(running[0]!, stream).end('{}')
    await vi.waitUntil(() => seen.isClosed)
    expect(seen.text).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(seen.text).toContain('\r\nConnection: close\r\n')
    expect(seen.text).not.toContain('Keep-Alive')
  },
)

test('if its headers were sent before, its connection gets one more answer', async () => {
  const { listening, client, running, seen } = await start()
  const sink = begin(running[0]!, true)
  listening.retire()
  sink.end('data: 1\n\n')
  client.write(ask)
  await vi.waitUntil(() => running.length === 2)
  begin(running[1]!, false).end('{}')
  await vi.waitUntil(() => seen.isClosed)
  expect(seen.text.match(/^Connection: .*(?=\r)/gm)).toEqual(['Connection: keep-alive', 'Connection: close'])
})

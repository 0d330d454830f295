import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test } from 'vitest'
import type { Api } from '../../src/http/api.ts'
import { serve } from '../../src/http/serve.ts'

const patienceMs = 5_000
const lookEveryMs = 20

test('a delivered answer can be garbage collected while its connection stays open', async () => {
  const answers: WeakRef<object>[] = []
  const handle: Api['handle'] = (_request, response) => {
    answers.push(new WeakRef(response))
    response.end('ok')
  }
  // Only the parts of the API that this test uses.
  const api = { handle, openRequests: 0, abortAll() {}, sockets: { drain() {}, terminate() {} } } as unknown as Api
  const limits = { headerBytes: 16_384, headerMs: 10_000, requestMs: 10_000, probeConnections: 1, connections: 10 }
  const listening = await serve(() => api, { host: '127.0.0.1', port: 0, ...limits })
  onTestFinished(async () => {
    await listening.drain(1_000)
  })
  const client = connect(listening.port, '127.0.0.1')
  onTestFinished(() => {
    client.destroy()
  })
  client.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
  await once(client, 'data')
  const collect = collector()
  for (let waitedMs = 0; waitedMs < patienceMs && answers[0]!.deref() !== undefined; waitedMs += lookEveryMs) {
    await delay(lookEveryMs)
    collect()
  }
  expect(answers).toHaveLength(1)
  expect(answers[0]!.deref()).toBeUndefined()
  expect(client.destroyed).toBe(false)
})

function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

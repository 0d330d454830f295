import { afterEach, describe, expect, test } from 'vitest'
import { Service, type ServiceOptions } from '../service.ts'
import { SocketClient, type Asked } from '../socket-client.ts'

let service: Service
let clients: SocketClient[] = []

afterEach(async () => {
  for (const client of clients) client.socket.terminate()
  clients = []
  await service.stop()
})

async function start(options: ServiceOptions = {}): Promise<void> {
  service = await Service.start({ formats: ['openai-responses'], ...options })
}

async function open(asked: Asked = {}): Promise<SocketClient> {
  const client = await SocketClient.open(service, asked)
  clients.push(client)
  return client
}

describe.each(['openai-chat', 'openai-responses'] as const)('an answer of a backend that speaks %s', (format) => {
  test('comes as the same events as over HTTP, one message each, and without [DONE]', async () => {
    await start({ formats: [format] })
    const client = await open()
    const { events, last, text } = await client.turn({ stream: true })
    console.log(JSON.stringify(events.slice(0, 3)), last, text)
    const overHttp = await (await service.responses({ stream: true })).text()
    const types = [...overHttp.matchAll(/"type":"((?:response\.|error)[\w.]*)"/g)].map(([, type]) => type)
    expect(events.map(({ type }) => type)).toEqual(types.filter((t) => t!.includes('.') || t === 'error'))
  })
})

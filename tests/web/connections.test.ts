import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { listenForWeb } from '../../src/web/serve-web.ts'

async function open(port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

test('one address cannot take every connection of the web app', async () => {
  await using web = await listenForWeb({ host: '127.0.0.1', port: 0, connections: 20 })
  const greedy = await Promise.all(Array.from({ length: 30 }, () => open(web.port, '127.0.0.2')))
  const other = await open(web.port, '127.0.0.1')
  other.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  const [answer] = (await once(other, 'data')) as [Buffer]
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 503/)
  expect(greedy.filter((socket) => !socket.closed)).toHaveLength(16)
  for (const socket of greedy) socket.destroy()
})

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

test('if the web app cannot be opened, the request gets a 503, and the next one opens it again', async () => {
  await using web = await listenForWeb({ host: '127.0.0.1', port: 0, connections: 20 })
  let opened = 0
  web.serve(async () => {
    opened += 1
    if (opened === 1) throw new Error('cannot be opened')
    return async (_request, response) => void response.end('a page')
  })
  const get = (): Promise<Response> => fetch(`http://127.0.0.1:${web.port}/`)
  const failed = await get()
  expect([failed.status, failed.headers.get('retry-after'), failed.headers.get('x-frame-options')]).toEqual([
    503,
    '1',
    'DENY',
  ])
  await failed.text()
  const pages = await Promise.all([get(), get()])
  expect(await Promise.all(pages.map((page) => page.text()))).toEqual(['a page', 'a page'])
  expect(opened).toBe(2)
})

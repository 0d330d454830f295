import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { nextEventLoopTurn } from '../../src/runtime/yield-to-event-loop.ts'
import { listenForWeb, ServiceUpgraded, type WebListening } from '../../src/web/serve-web.ts'
import { createWebListener, type WebListener } from '../../src/web/web-listener.ts'

/** Opens the port with a clock that only `skip` advances. */
async function openPort(): Promise<WebListening & { readonly skip: (ms: number) => void }> {
  let nowMs = 0
  const clock = { monotonicMs: () => nowMs }
  const web = await listenForWeb({ host: '127.0.0.1', port: 0, connections: 20, clock })
  return { ...web, skip: (ms) => void (nowMs += ms) }
}

/** Serves with `listener` once `finish` is called. `opening` resolves when the first request has arrived. */
function openInSteps(
  web: WebListening,
  listener: WebListener,
): { readonly opening: Promise<void>; readonly finish: () => void } {
  const began = Promise.withResolvers<void>()
  const finished = Promise.withResolvers<WebListener>()
  web.serve(() => {
    began.resolve()
    return finished.promise
  })
  return { opening: began.promise, finish: () => finished.resolve(listener) }
}

/** The response to the next request that a server of this process gets. */
function nextResponse(): Promise<ServerResponse> {
  const channel = 'http.server.request.start'
  return new Promise((resolve) => {
    const take = (message: unknown): void => {
      unsubscribe(channel, take)
      resolve((message as { response: ServerResponse }).response)
    }
    subscribe(channel, take)
  })
}

async function open(port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

test('one address cannot take every connection of the web app', async () => {
  await using web = await openPort()
  const greedy = await Promise.all(Array.from({ length: 30 }, () => open(web.port, '127.0.0.2')))
  const other = await open(web.port, '127.0.0.1')
  other.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  const [answer] = (await once(other, 'data')) as [Buffer]
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 503/)
  expect(greedy.filter((socket) => !socket.closed)).toHaveLength(16)
  for (const socket of greedy) socket.destroy()
})

test('if the web app cannot be opened, requests get a 503 for a second, and then the next one opens it again', async () => {
  await using web = await openPort()
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
  expect(await failed.text()).toBe('Not available yet. Try again in a second.\n')
  web.skip(999)
  expect((await get()).status).toBe(503)
  expect(opened).toBe(1)
  web.skip(1)
  const pages = await Promise.all([get(), get()])
  expect(await Promise.all(pages.map((page) => page.text()))).toEqual(['a page', 'a page'])
  expect(opened).toBe(2)
})

test('if the service was upgraded and not restarted, the response says so', async () => {
  await using web = await openPort()
  web.serve(() => Promise.reject(new ServiceUpgraded()))
  const response = await fetch(`http://127.0.0.1:${web.port}/`)
  expect([response.status, await response.text()]).toEqual([
    503,
    'The service was upgraded and must be restarted. Try again after that.\n',
  ])
})

test('a form that arrives while the web app is opened is answered in full', async () => {
  await using web = await openPort()
  const { opening, finish } = openInSteps(
    web,
    createWebListener(async (request) => new Response(await request.text())),
  )
  const form = 'x'.repeat(300_000)
  const sent = request({ port: web.port, host: '127.0.0.1', method: 'POST' })
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>
  sent.write(form.slice(0, 100))
  await opening
  sent.end(form.slice(100))
  await nextEventLoopTurn()
  finish()
  const [answer] = await answered
  expect([answer.statusCode, await text(answer)]).toEqual([200, form])
})

test('a service that stops while the web app is opened still answers the page, and then closes', async () => {
  const web = await openPort()
  const { opening, finish } = openInSteps(web, async (_request, response) => void response.end('a page'))
  const page = fetch(`http://127.0.0.1:${web.port}/`, { headers: { connection: 'close' } })
  await opening
  const closed = web[Symbol.asyncDispose]()
  finish()
  expect(await (await page).text()).toBe('a page')
  await closed
})

test('a client that disconnects while the web app is opened is not served', async () => {
  await using web = await openPort()
  const served: (string | undefined)[] = []
  const { opening, finish } = openInSteps(web, async ({ url }, response) => {
    served.push(url)
    response.end('a page')
  })
  const socket = await open(web.port, '127.0.0.1')
  const response = nextResponse()
  socket.write('GET /left HTTP/1.1\r\nHost: x\r\n\r\n')
  await opening
  const closed = once(await response, 'close')
  socket.destroy()
  await closed
  const stays = fetch(`http://127.0.0.1:${web.port}/stays`)
  finish()
  expect(await (await stays).text()).toBe('a page')
  expect(served).toEqual(['/stays'])
})

import { createServer, type AddressInfo, type Socket } from 'node:net'

const MiB = 1024 * 1024

/** The behavior of the hostile provider, by model name. Each is bounded. */
const behaviors: Readonly<Record<string, (socket: Socket) => void>> = {
  /** Never answers. */
  hang: () => {},
  /** 60 MB of comments before any content. */
  comments: (socket) => {
    openStream(socket)
    const comment = `: ${'c'.repeat(64 * 1024 - 4)}\n\n`
    pump(socket, (sent) => (sent < 60 * MiB ? comment : undefined))
  },
  /** Events without the empty line that would end them, then writes of two bytes. */
  unframed: (socket) => {
    openStream(socket)
    const line = `data: ${'{"x":1}'.repeat(9_000)}\n`
    pump(socket, (sent) => (sent < 7.5 * MiB ? line : sent < 7.6 * MiB ? 'd\n' : undefined))
  },
  /** Interim answers without end. */
  interim: (socket) => {
    const interim = 'HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n'.repeat(200)
    pump(socket, (sent) => (sent < 64 * MiB ? interim : undefined))
  },
  /** A complete answer with absurd numbers. */
  numbers: (socket) =>
    sendWhole(socket, 200, {
      id: 'x',
      object: 'chat.completion',
      created: 1e300,
      choices: [{ index: 1e15, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 2 ** 60, completion_tokens: -1, total_tokens: Number.MAX_VALUE },
    }),
  /** Content, then an error in an undocumented shape, then the end of a successful answer. */
  errors: (socket) => {
    openStream(socket)
    const content = { choices: [{ index: 0, delta: { role: 'assistant', content: 'Hello' } }] }
    socket.write(chunk(`data: ${JSON.stringify(content)}\n\n`))
    socket.write(chunk(`event: error\ndata: {"detail":"${secretOfProvider}"}\n\ndata: [DONE]\n\n`))
    socket.write('0\r\n\r\n')
  },
  /** An error with a very long body. */
  'long-refusal': (socket) => {
    socket.write('HTTP/1.1 500 No\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n')
    const text = '{'.repeat(32 * 1024)
    pump(socket, (sent) => (sent < 32 * MiB ? text : undefined))
  },
}

/** A placeholder for the text of a provider, which no client may ever see. */
const secretOfProvider = 'words-of-the-provider'
export const hostileModels = Object.keys(behaviors)

/** Serves the models above. It reads only the model name of each request body. */
export async function startHostileProvider(): Promise<{ readonly baseUrl: string; close(): void }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    let received = ''
    socket.setEncoding('latin1').on('data', (text: string) => {
      received = (received + text).slice(-16 * 1024)
      const model = /"model":"([\w-]+)"/.exec(received)?.[1]
      if (model === undefined) return
      received = ''
      behaviors[model]?.(socket)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

function openStream(socket: Socket): void {
  socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n')
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`
}

function sendWhole(socket: Socket, status: number, body: object): void {
  const text = JSON.stringify(body)
  socket.write(
    `HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
  )
}

/**
 * Writes the results of `next`, which receives the number of bytes sent so far, with backpressure, until it returns
 * nothing or the socket closes.
 */
function pump(socket: Socket, next: (sent: number) => string | undefined): void {
  let sent = 0
  const isChunked = socket.bytesWritten > 0
  const write = (): void => {
    while (!socket.destroyed) {
      const text = next(sent)
      if (text === undefined) return
      sent += text.length
      if (!socket.write(isChunked ? chunk(text) : text)) {
        socket.once('drain', write)
        return
      }
    }
  }
  write()
}

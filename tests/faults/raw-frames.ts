import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** One WebSocket frame from a client, which may violate the protocol (RFC 6455, 5.2). */
export interface Frame {
  /** 0 continuation, 1 text, 2 binary, 8 close, 9 ping, 10 pong. */
  readonly opcode: number
  readonly payload?: string | Buffer
  readonly fin?: boolean
  readonly masked?: boolean
  /** The length in the frame's head, if it is wrong. */
  readonly length?: number
}

function frame({ opcode, payload = '', fin = true, masked = true, length }: Frame): Buffer {
  const bytes = Buffer.from(payload)
  const declared = length ?? bytes.length
  const head = Buffer.alloc(declared < 126 ? 2 : declared < 65_536 ? 4 : 10)
  head[0] = (fin ? 0x80 : 0) | opcode
  head[1] = (masked ? 0x80 : 0) | (declared < 126 ? declared : declared < 65_536 ? 126 : 127)
  if (head.length === 4) head.writeUInt16BE(declared, 2)
  else if (head.length === 10) head.writeBigUInt64BE(BigInt(declared), 2)
  // A mask of zeros leaves the payload as it is.
  return Buffer.concat([head, ...(masked ? [Buffer.alloc(4)] : []), bytes])
}

/** A WebSocket whose frames the test writes itself. */
export class RawSocket {
  readonly socket: Socket
  /** Everything received after the answer to the upgrade. */
  readonly #chunks: Buffer[] = []
  closed = false

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => this.#chunks.push(chunk))
    // A reset also ends the connection.
    socket.on('error', () => {})
    socket.on('close', () => {
      this.closed = true
    })
  }

  static async open(origin: string, key: string): Promise<RawSocket> {
    const { hostname, port } = new URL(origin)
    const socket = connect({ host: hostname, port: Number(port), noDelay: true })
    await once(socket, 'connect')
    const lines = [
      'GET /v1/responses HTTP/1.1',
      'host: x',
      `authorization: Bearer ${key}`,
      'connection: Upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      'sec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==',
    ]
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    if (!answer.toString('latin1').startsWith('HTTP/1.1 101 ')) throw new Error(answer.toString('latin1'))
    return new RawSocket(socket)
  }

  /** Everything received. */
  get received(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  /** The code of the last close frame, if any. */
  get closeCode(): number | undefined {
    const all = this.received
    const at = all.lastIndexOf(0x88)
    return at >= 0 && all.length >= at + 4 ? all.readUInt16BE(at + 2) : undefined
  }

  write(...frames: readonly Frame[]): boolean {
    return this.socket.write(Buffer.concat(frames.map(frame)))
  }
}

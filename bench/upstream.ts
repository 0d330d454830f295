// The fake provider, in its own process: HTTP/1.1 on bare sockets, with all answers prepared in advance.
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { messageEvents, streamEvents, wholeAnswer, wholeMessage } from './bodies.ts'
import type { Listening, UpstreamCommand, UpstreamMode, UpstreamReport } from './protocol.ts'

const maxRequestBytes = 1024 * 1024
const backlog = 4096
/** A held stream ends after this many events, one each second. */
const maxHeldEvents = 120
const heldEveryMs = 1000
const eventsOfHeldStream = 8

const headEnd = Buffer.from('\r\n\r\n')
const chunkedEnd = '0\r\n\r\n'
const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n' +
  'x-request-id: req_bench_upstream\r\ntransfer-encoding: chunked\r\n\r\n'

const messagesStart = Buffer.from('POST /v1/messages ')

let answer: (socket: Socket, isMessages: boolean) => void = (socket) => socket.destroy()
let answered = 0
const openStreams = new Set<Socket>()

function setMode(mode: UpstreamMode): void {
  if (mode.name === 'whole') {
    const [chat, messages] = [wholeAnswer(mode.bodyBytes), wholeMessage(mode.bodyBytes)].map(wholeResponse)
    answer = (socket, isMessages) => socket.write(isMessages ? messages! : chat!)
  } else if (mode.name === 'burst') {
    const [chat, messages] = [streamEvents(mode.events), messageEvents(mode.events)].map((events) =>
      Buffer.from(streamHead + events.map(httpChunk).join('') + chunkedEnd),
    )
    answer = (socket, isMessages) => socket.write(isMessages ? messages! : chat!)
  } else if (mode.name === 'paced') {
    const [chat, messages] = [streamEvents(mode.events), messageEvents(mode.events)].map((events) =>
      events.map((event) => Buffer.from(httpChunk(event))),
    )
    answer = (socket, isMessages) => answerPaced(socket, isMessages ? messages! : chat!, mode.everyMs)
  } else {
    answer = answerHeld
  }
}

function wholeResponse(body: string): Buffer {
  return Buffer.from(
    'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_bench_upstream\r\n' +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

function httpChunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
}

function answerPaced(socket: Socket, frames: readonly Buffer[], everyMs: number): void {
  let sent = 0
  socket.write(streamHead)
  const timer = setInterval(() => {
    const frame = frames[sent++]
    if (frame !== undefined && !socket.destroyed) socket.write(frame)
    if (sent < frames.length && !socket.destroyed) return
    clearInterval(timer)
    if (!socket.destroyed) socket.write(chunkedEnd)
  }, everyMs)
}

const heldFrames = streamEvents(eventsOfHeldStream).map(httpChunk)
const heldTextFrame = heldFrames[1]!

function answerHeld(socket: Socket): void {
  openStreams.add(socket)
  socket.write(streamHead + heldFrames.slice(0, 2).join(''))
  let sent = 0
  const timer = setInterval(() => {
    if (openStreams.has(socket) && ++sent < maxHeldEvents) {
      socket.write(heldTextFrame)
      return
    }
    clearInterval(timer)
    finishHeld(socket)
  }, heldEveryMs)
}

function finishHeld(socket: Socket): void {
  if (!openStreams.delete(socket) || socket.destroyed) return
  socket.write(heldFrames.slice(2).join('') + chunkedEnd)
}

/** Reads requests from one connection and answers each as soon as it is complete. */
function serve(socket: Socket): void {
  let pending: Buffer | undefined
  socket.setNoDelay(true)
  socket.on('data', (chunk: Buffer) => {
    let bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk])
    pending = undefined
    while (bytes.length > 0) {
      const length = requestLength(bytes)
      if (length === undefined) {
        if (bytes.length > maxRequestBytes) socket.destroy()
        pending = bytes
        return
      }
      answered++
      answer(socket, bytes.subarray(0, messagesStart.length).equals(messagesStart))
      bytes = bytes.subarray(length)
    }
  })
  socket.on('close', () => openStreams.delete(socket))
  // A gateway that stops resets its connections, which is not a failure.
  socket.on('error', () => socket.destroy())
}

/** The length of the first request in `bytes`, or undefined while it is incomplete. */
function requestLength(bytes: Buffer): number | undefined {
  const end = bytes.indexOf(headEnd)
  if (end < 0) return undefined
  const head = bytes.toString('latin1', 0, end)
  const bodyStart = end + headEnd.length
  const declared = /\r\ncontent-length: *(\d+)/i.exec(head)
  if (declared !== null) {
    const length = bodyStart + Number(declared[1])
    return bytes.length >= length ? length : undefined
  }
  if (!/\r\ntransfer-encoding: *chunked/i.test(head)) return bodyStart
  const last = bytes.indexOf(chunkedEnd, bodyStart)
  return last < 0 ? undefined : last + chunkedEnd.length
}

function obey(command: UpstreamCommand): void {
  if (command.do === 'mode') setMode(command.mode)
  if (command.do === 'finish') for (const socket of openStreams) finishHeld(socket)
  process.send?.({ answered, openStreams: openStreams.size } satisfies UpstreamReport)
}

const server = createServer({ noDelay: true }, serve)
server.listen({ host: '127.0.0.1', port: 0, backlog }, () => {
  process.send?.({ port: (server.address() as AddressInfo).port } satisfies Listening)
})
process.on('message', obey)
process.on('disconnect', () => process.exit(0))

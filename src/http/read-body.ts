import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Transform } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { invalidRequest, ServiceError } from '../domain/errors.ts'
import { type JsonObject, isObject } from '../domain/json.ts'
import { bodyShape, duplicateKey, JsonScan, type JsonMember } from '../formats/json-scan.ts'
import { foldCase, findMiscasedMember } from '../formats/rewritten-members.ts'
import type { Clock, Timer } from '../runtime/clock.ts'
import { asError } from '../runtime/describe-bug.ts'
import { GatheredBytes } from '../runtime/gathered-bytes.ts'
import { decoderFor, isOverRatio, overRatio, undecodable } from './content-encoding.ts'

/** A larger body is parsed in several turns of the event loop, so that no turn takes long (contract 29.7). */
const largeBodyBytes = 256 * 1024
/** A body that is incomplete after this time counts as slow. */
const promptMs = 1_000
/** After this time a body must have arrived at the minimum average rate. */
const slowAfterMs = 10_000
const minBytesPerSecond = 4 * 1024
/** After `timeoutMs` a body must keep arriving at this rate in each period: a large body may need more time. */
const minLateBytesPerSecond = 16 * 1024
/**
 * UTF-8, and what HTTP libraries state when they do not know better: text in ASCII has the same bytes in all of them, and
 * other text must be valid UTF-8, whatever is stated.
 */
const charsets: ReadonlySet<string> = new Set(['utf-8', 'utf8', 'us-ascii', 'ascii', 'iso-8859-1', 'latin1'])

export interface JsonBody {
  readonly bytes: Buffer
  readonly members: readonly JsonMember[]
  readonly body: JsonObject
}

export interface BodyLimits {
  readonly maxBytes: number
  /** A body that takes longer must arrive at 16 KiB/s. */
  readonly timeoutMs: number
  readonly clock: Clock
}

/** The longest time that a body can take, milliseconds: one that arrives at the minimum rate. */
export function longestBodyMs(maxBytes: number, timeoutMs: number): number {
  return timeoutMs + Math.ceil((maxBytes / minLateBytesPerSecond) * 1000)
}

/** What a body costs its sender while it is read. */
export interface BodyCost {
  /**
   * Called with the number of received bytes, decompressed, before they are processed.
   * @throws ServiceError if they are too many
   */
  spend(bytes: number): void
  /** Called repeatedly while the body is slow. @throws ServiceError if its sender has too many slow bodies */
  slow?(): void
  /** Called when the body was read or rejected, maybe more than once. */
  [Symbol.dispose]?(): void
}

/**
 * Reads a JSON body, compressed or not (contract 2.25). Its shape is checked while it arrives, so that a body that
 * would be slow to parse is rejected first. A body must arrive at an average of at least 4 KiB/s after the first 10 s,
 * and after `timeoutMs` at 16 KiB/s in each further 10 s (contract 29.4).
 * @throws ServiceError `unsupported_media_type`, `payload_too_large`, `request_timeout`, `invalid_json`,
 * `invalid_request`; errors of `cost`
 */
export function readJsonBody(request: IncomingMessage, limits: BodyLimits, cost: BodyCost): Promise<JsonBody> {
  try {
    checkMediaType(request)
    const announced = request.headers['content-length']
    if (announced !== undefined && Number(announced) > limits.maxBytes) throw tooLarge(limits.maxBytes)
    return new BodyReader(request, limits, cost).result
  } catch (error) {
    cost[Symbol.dispose]?.()
    return Promise.reject(asError(error))
  }
}

/** Reads one body. Its listeners are removed and its memory is released when it ends, however it ends. */
class BodyReader {
  readonly result: Promise<JsonBody>
  readonly #request: IncomingMessage
  readonly #limits: BodyLimits
  readonly #cost: BodyCost
  /** Undefined if the body is not compressed. */
  readonly #decoder: Transform | undefined
  readonly #scan = new JsonScan(bodyShape)
  readonly #gathered = new GatheredBytes()
  /** Bytes so far, decompressed. */
  #length = 0
  /** Bytes so far, as received. */
  #received = 0
  #timer: Timer
  /** The current period of the rate check, when it ends, and the bytes received before it. */
  #intervalMs: number
  #waitedMs: number
  #receivedBefore = 0
  #isOver = false
  #resolve!: (body: JsonBody) => void
  #reject!: (error: Error) => void

  constructor(request: IncomingMessage, limits: BodyLimits, cost: BodyCost) {
    this.#request = request
    this.#limits = limits
    this.#cost = cost
    this.#intervalMs = Math.min(promptMs, limits.timeoutMs)
    this.#waitedMs = this.#intervalMs
    this.#decoder = decoderFor(request.headers['content-encoding'])
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#timer = limits.clock.after(this.#waitedMs, () => this.#checkRate())
    this.#decoder
      ?.on('data', (chunk: Buffer) => this.#take(chunk))
      .on('end', () => this.#complete())
      .on('drain', () => request.resume())
      // The listener stays: writes to a failed decoder emit errors too.
      .on('error', () => this.#fail(new ServiceError('invalid_request', { words: { problem: undecodable } })))
    request.on('data', this.#receive).on('end', this.#ended).on('close', this.#closed)
    // The client disconnected while its key was looked up: no event follows.
    if (request.destroyed) this.#fail(endedEarly())
  }

  readonly #receive = (chunk: Buffer): void => {
    this.#received += chunk.length
    if (this.#decoder === undefined) this.#take(chunk)
    else if (!this.#decoder.write(chunk)) this.#request.pause()
  }

  readonly #ended = (): void => {
    // The whole body has arrived: the remaining time is our own work.
    this.#timer.cancel()
    if (this.#decoder === undefined) this.#complete()
    else this.#decoder.end()
  }

  readonly #closed = (): void => {
    if (!this.#request.complete) this.#fail(endedEarly())
  }

  #take(chunk: Buffer): void {
    if (this.#isOver) return
    this.#length += chunk.length
    const { maxBytes } = this.#limits
    if (this.#length > maxBytes) return this.#fail(tooLarge(maxBytes))
    if (this.#decoder !== undefined && isOverRatio(this.#length, this.#received)) return this.#fail(overRatio())
    try {
      this.#cost.spend(chunk.length)
      this.#scan.push(chunk)
    } catch (error) {
      return this.#fail(error)
    }
    // A decoder's output may share its memory.
    if (this.#decoder === undefined) this.#gathered.add(chunk)
    else this.#gathered.addCopy(chunk)
  }

  #complete(): void {
    if (this.#isOver) return
    this.#release()
    const bytes = this.#gathered.take()
    if (bytes.length > largeBodyBytes) {
      parseInTurns(bytes, this.#scan).then(
        (body) => this.#end(body),
        (error: unknown) => this.#end(asError(error)),
      )
      return
    }
    try {
      this.#end(parse(bytes, textOf(bytes), this.#scan))
    } catch (error) {
      this.#end(asError(error))
    }
  }

  #checkRate(): void {
    const { clock, timeoutMs } = this.#limits
    if (this.#request.isPaused()) {
      // The decoder is slow, not the sender.
      this.#timer = clock.after(promptMs, () => this.#checkRate())
      return
    }
    const waitedMs = this.#waitedMs
    const isTooSlow = waitedMs >= slowAfterMs && this.#received < (waitedMs / 1000) * minBytesPerSecond
    const arrived = this.#received - this.#receivedBefore
    const isTooLate = waitedMs >= timeoutMs && arrived < (this.#intervalMs / 1000) * minLateBytesPerSecond
    if (isTooSlow || isTooLate)
      return this.#fail(new ServiceError('request_timeout', { words: { seconds: waitedMs / 1000 } }))
    try {
      this.#cost.slow?.()
    } catch (error) {
      return this.#fail(error)
    }
    this.#receivedBefore = this.#received
    if (waitedMs >= timeoutMs) this.#intervalMs = Math.min(slowAfterMs, timeoutMs)
    else {
      const nextMs = waitedMs < slowAfterMs ? slowAfterMs - waitedMs : slowAfterMs
      this.#intervalMs = Math.min(nextMs, timeoutMs - waitedMs)
    }
    this.#waitedMs += this.#intervalMs
    this.#timer = clock.after(this.#intervalMs, () => this.#checkRate())
  }

  #fail(error: unknown): void {
    this.#release()
    this.#request.pause()
    this.#gathered.free()
    this.#end(asError(error))
  }

  #end(result: JsonBody | Error): void {
    this.#cost[Symbol.dispose]?.()
    if (result instanceof Error) this.#reject(result)
    else this.#resolve(result)
  }

  #release(): void {
    this.#isOver = true
    this.#timer.cancel()
    this.#request.off('data', this.#receive).off('end', this.#ended).off('close', this.#closed)
    this.#decoder?.destroy()
  }
}

function endedEarly(): ServiceError {
  return new ServiceError('invalid_json', { words: { where: ': it ended early' } })
}

/** Parses a JSON body that is already in memory, within the same limits. @throws ServiceError as above */
export async function readJson(bytes: Buffer, maxBytes: number): Promise<JsonBody> {
  if (bytes.length > maxBytes) throw tooLarge(maxBytes)
  const scan = new JsonScan(bodyShape)
  for (let from = 0; from < bytes.length; from += largeBodyBytes) {
    if (from > 0) await nextTurn()
    scan.push(bytes.subarray(from, from + largeBodyBytes))
  }
  return bytes.length > largeBodyBytes ? parseInTurns(bytes, scan) : parse(bytes, textOf(bytes), scan)
}

/**
 * Clients also send no type, or one such as `application/vnd.api+json` (contract 2.25).
 * @throws ServiceError `unsupported_media_type`
 */
function checkMediaType({ headers }: IncomingMessage): void {
  const type = headers['content-type']
  if (type === undefined || type === 'application/json') return
  const charset = /;\s*charset\s*=\s*["']?([^\s;"']+)/i.exec(type)?.[1]?.toLowerCase()
  const isJson = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type)
  if (!isJson || (charset !== undefined && !charsets.has(charset))) throw new ServiceError('unsupported_media_type')
}

async function parseInTurns(bytes: Buffer, scan: JsonScan): Promise<JsonBody> {
  await nextTurn()
  const text = textOf(bytes)
  await nextTurn()
  const body = parse(bytes, text, scan)
  // The next step writes the body again for a backend, which takes as long as parsing it.
  await nextTurn()
  return body
}

function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new ServiceError('invalid_json', { words: { where: ': it is not UTF-8' } })
  return bytes.toString('utf8')
}

function parse(bytes: Buffer, text: string, scan: JsonScan): JsonBody {
  scan.assertFewShapes(text)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw new ServiceError('invalid_json', { words: { where: whyNot(bytes) } })
  }
  if (!isObject(body)) {
    throw new ServiceError('invalid_json', { words: { where: ': it is a JSON value of another type' } })
  }
  const members = scan.members(bytes)
  const twice = duplicateKey(members)
  if (twice !== undefined) {
    // The name is the caller's and could be anything, so only a plain one is repeated.
    const name = /^\w{1,40}$/.test(twice) ? twice : undefined
    const problem = `${name === undefined ? 'A field' : `The field ${name}`} appears twice. Send it once.`
    throw new ServiceError('invalid_request', { words: { problem }, ...(name === undefined ? {} : { param: name }) })
  }
  const miscased = findMiscasedMember(members)
  if (miscased !== undefined) {
    const name = foldCase(miscased)
    const given = /^\w{1,40}$/.test(miscased) ? miscased : 'A field'
    throw invalidRequest(
      given === miscased ? given : name,
      `${given} is not a known field: field names are lowercase. Send ${name}.`,
    )
  }
  return { bytes, members, body }
}

function whyNot(bytes: Buffer): string {
  if (bytes.length === 0) return ': it is empty'
  return bytes.indexOf('\ufeff') === 0 ? ': it starts with a byte order mark' : ''
}

/** The error for a body larger than the operator allows. */
export function tooLarge(maxBytes: number): ServiceError {
  return new ServiceError('payload_too_large', { words: { limit: `${Math.floor(maxBytes / 1024 / 1024)} MiB` } })
}

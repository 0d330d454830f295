import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../../src/domain/errors.ts'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { formatById, relayById } from '../../../src/formats/formats.ts'
import { alwaysGranted } from '../../../src/gateway/auth/call-grant.ts'
import type { Lane, LaneOptions } from '../../../src/gateway/lanes/lane.ts'
import { openLane } from '../../../src/gateway/lanes/open-lane.ts'
import type { Backend } from '../../../src/gateway/ports.ts'
import { AttemptRun } from '../../../src/gateway/request/attempt.ts'
import { contextOf } from '../../formats/exchange.ts'
import { ManualClock } from '../manual-clock.ts'
import { goodAnswers } from '../provider-faults.ts'

const timeouts = {
  connectMs: 2_000,
  headersMs: 30_000,
  firstContentMs: 30_000,
  wholeAnswerMs: 30_000,
  idleMs: 30_000,
  totalMs: 60_000,
}

/** An attempt at a backend that sends only what the test decides. `limits` is absent for one without deadlines. */
function begin(
  bodyBytes: number | Buffer = 0,
  limits: { timeouts?: Backend['timeouts'] } = { timeouts },
  grant: () => void | Promise<void> = alwaysGranted,
) {
  const clock = new ManualClock()
  const calls = {
    paused: 0,
    aborted: 0,
    isSent: undefined as boolean | undefined,
    isFlushed: undefined as boolean | undefined,
  }
  const backend = {
    id: 'b',
    issuer: 'someone',
    ...limits,
    dialect: { streamUsage: true },
    call: () => ({
      get isSent() {
        return calls.isSent
      },
      get isFlushed() {
        return calls.isFlushed
      },
      pause: () => void (calls.paused += 1),
      resume: () => {},
      abort: () => void (calls.aborted += 1),
    }),
  } as unknown as Backend
  const context = contextOf(formatById('openai-responses').readRequest({ model: 'p', input: 'x', stream: true }))
  const format = formatById('openai-responses')
  const open = (relay: LaneOptions['relay']): Lane =>
    openLane({ context, client: format, backend, backendFormat: format, relay })
  const run = new AttemptRun(backend, { lane: open(relayById('openai-responses')), stream: true, clock })
  const ended = { error: undefined as unknown, isReady: false }
  const body = typeof bodyBytes === 'number' ? 'x'.repeat(bodyBytes) : bodyBytes
  run.open({ body, stream: true, requestId: 'req_1' }, grant).then(
    () => (ended.isReady = true),
    (error: unknown) => (ended.error = error),
  )
  const translate = (): void => run.changeLane(open(undefined))
  return { run, clock, calls, ended, translate }
}

function refuse(): void {
  throw new ServiceError('key_inactive')
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const streamHead = { status: 200, contentType: 'text/event-stream', retryAfterMs: undefined, requestId: undefined }
const { opening, delta, ending, success } = goodAnswers['openai-responses']

describe('a call that waited for a connection', () => {
  test('is sent without another check if it waited only briefly', () => {
    let checks = 0
    const { run } = begin(0, { timeouts }, () => void (checks += 1))
    expect([run.mayStillSend(), checks]).toEqual([true, 1])
  })

  test.each([
    ['at once', true, (): void => {}, undefined],
    ['after a look-up', true, async (): Promise<void> => {}, undefined],
    ['refused at once', false, refuse, 'key_inactive'],
    ['refused after a look-up', false, async (): Promise<void> => refuse(), 'key_inactive'],
  ] as const)('is checked again: %s', async (_, expected, again, refusal) => {
    let grant: () => void | Promise<void> = alwaysGranted
    const { run, clock } = begin(0, { timeouts }, () => grant())
    await clock.advance(300)
    grant = again
    expect(await run.mayStillSend()).toBe(expected)
    expect(run.grant?.refusal?.code).toBe(refusal)
  })
})

describe('the memory of the body', () => {
  const answered = (isFlushed: boolean | undefined, events: string): Buffer => {
    const body = Buffer.alloc(100_000)
    const { run, calls } = begin(body)
    run.onHead(streamHead)
    run.onData(Buffer.from(events))
    calls.isFlushed = isFlushed
    run.onEnd()
    return body
  }

  test.each([
    ['freed after a complete answer', true, opening + delta('x') + ending(success), 0],
    ['kept if the connection may still read it', false, opening + delta('x') + ending(success), 100_000],
    [
      'kept if the call does not say whether it was flushed',
      undefined,
      opening + delta('x') + ending(success),
      100_000,
    ],
    ['kept if the answer is incomplete, because it may be sent again', true, opening, 100_000],
  ] as const)('is %s', (_, isFlushed, events, left) => {
    expect(answered(isFlushed, events).byteLength).toBe(left)
  })
})

describe('before content', () => {
  test('any number of comments uses no memory', async () => {
    const { run, ended } = begin()
    run.onHead(streamHead)
    const comments = Buffer.from(': keep-alive\n\n'.repeat(4_000))
    for (let read = 0; read < 200; read += 1) run.onData(comments)
    run.onData(Buffer.from(opening + delta('x')))
    await settled()
    expect(ended).toEqual({ error: undefined, isReady: true })
  })

  test('a comment that arrives in two reads after an event does not swallow the event after it', async () => {
    const { run, ended, translate } = begin()
    run.onHead(streamHead)
    run.onData(Buffer.from(`${opening}: keep-`))
    run.onData(Buffer.from('alive\n\n'))
    translate()
    // Without its `event:` line, which many servers omit.
    run.onData(Buffer.from(delta('first words').replace(/^event:.*\n/, '')))
    await settled()
    let text = ''
    run.flowTo({ write: (arrived) => (text += arrived), ended: () => {}, broke: () => {} })
    expect([ended.error, text]).toEqual([undefined, expect.stringContaining('first words')])
  })

  test.each([
    ['events that say nothing', 'data: {"type":"response.in_progress","response":{}}\n\n'.repeat(1_000)],
    ['an event without an end', 'data: x'.repeat(8_000)],
    ['comments without an empty line', ': x\n'.repeat(12_000)],
  ])('%s are abandoned after 256 KiB', async (_, read) => {
    const { run, ended, calls } = begin()
    run.onHead(streamHead)
    let bytes = 0
    while (calls.aborted === 0 && bytes < 2 * 1024 * 1024) {
      run.onData(Buffer.from(read))
      bytes += read.length
    }
    await settled()
    expect(ended.error).toMatchObject({ outcome: 'broken' })
    expect(bytes).toBeLessThan(400 * 1024)
  })

  test.each(['text/plain', 'text/plain; charset=utf-8', ''])(
    'events with the content type %j are read',
    async (type) => {
      const { run, ended } = begin()
      run.onHead({ ...streamHead, contentType: type })
      run.onData(Buffer.from(opening + delta('x')))
      await settled()
      expect(ended).toEqual({ error: undefined, isReady: true })
    },
  )

  test('plain text and HTML pages are not answers', async () => {
    for (const contentType of ['text/plain', 'text/html', 'application/json']) {
      const { run, ended } = begin()
      run.onHead({ ...streamHead, contentType })
      run.onData(Buffer.from('Internal Server Error'))
      run.onEnd()
      await settled()
      expect(ended.error, contentType).toMatchObject({ outcome: 'broken' })
    }
  })

  test('a provider may repeat a long request and is never paused for that', async () => {
    const { run, ended, calls } = begin(200 * 1024)
    run.onHead(streamHead)
    const echo = JSON.stringify({
      type: 'response.created',
      response: { id: 'r', instructions: 'x'.repeat(200 * 1024) },
    })
    for (const type of ['response.created', 'response.queued', 'response.in_progress'])
      run.onData(Buffer.from(`data: ${echo.replace('response.created', type)}\n\n`))
    expect(calls.paused).toBe(0)
    run.onData(Buffer.from(delta('x')))
    await settled()
    expect(ended).toEqual({ error: undefined, isReady: true })
  })
})

test('a rejection whose body never ends is classified by what has arrived', async () => {
  const { run, clock, ended } = begin()
  run.onHead({ ...streamHead, status: 503, retryAfterMs: 7_000 })
  run.onData(Buffer.from('{"error":'))
  await clock.advance(2_500)
  await settled()
  expect(ended.error).toBeInstanceOf(UpstreamError)
  expect(ended.error).toMatchObject({ outcome: 'server_error', status: 503, retryAfterMs: 7_000 })
})

test('a call costs nothing if it is canceled before it is sent, or after a rejection without a body', async () => {
  for (const [isSent, status, isFree] of [
    [false, undefined, true],
    [true, 429, true],
    [true, undefined, false],
    [true, 200, false],
  ] as const) {
    const { run, calls, ended } = begin(10)
    calls.isSent = isSent
    if (status !== undefined) run.onHead({ ...streamHead, status })
    run.stop(new UpstreamError('cancelled'))
    await settled()
    expect([ended.error, run.bill.isFree], `${isSent} ${status}`).toMatchObject([{ outcome: 'cancelled' }, isFree])
  }
})

test('a target without deadlines may be silent for days, but its stream ends a second after the terminal event', async () => {
  const { run, clock, ended } = begin(0, {})
  await clock.advance(7 * 86_400_000)
  run.onHead(streamHead)
  run.onData(Buffer.from(opening + delta('x')))
  await settled()
  expect([ended, clock.waiting, run.longestSilenceMs]).toEqual([{ error: undefined, isReady: true }, 0, undefined])
  let isWhole = false
  run.flowTo({ write: () => {}, ended: () => (isWhole = true), broke: () => {} })
  run.onData(Buffer.from(ending(success)))
  expect(run.longestSilenceMs).toBe(1_000)
  run.passSilence()
  expect(isWhole).toBe(true)
})

import { Pool } from 'undici'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import { formatById } from '../../src/formats/formats.ts'
import { openEventStream, startScriptedUpstream, type ScriptedUpstream } from '../faults/scripted-upstream.ts'
import { isLongRun } from '../long-run.ts'
import { Service } from '../service.ts'
import { clientSides } from './client-sides.ts'
import type { StreamRecording } from './recordings.ts'

/** Concurrent requests. Each lane has its own backend, so that failures do not affect other lanes. */
const laneCount = 64
/** Five failures in a row open a breaker, and the last requests of an earlier call may have failed. */
const failuresInARow = 2
const maxBytes = 64 * 1024
/** A prime, so that stepping by it visits each truncation once. */
const stride = 1_000_003
/** A short run takes the truncations this close to an end, and one of this many others. */
const nearBytes = 1
const sampledEvery = 64

/** An answer whose connection closes cleanly after this many of its bytes. */
export interface Truncation {
  readonly recording: StreamRecording
  readonly bytes: number
}

/** What a client received of it. */
export interface TruncatedAnswer extends Truncation {
  readonly status: number
  readonly text: string
}

/** A service whose provider truncates its answers where a request specifies. */
export class TruncatingService implements AsyncDisposable {
  readonly service: Service
  readonly #upstream: ScriptedUpstream
  readonly #truncations: Truncation[] = []

  private constructor(service: Service, upstream: ScriptedUpstream) {
    this.service = service
    this.#upstream = upstream
    upstream.answer = (_request, response) => {
      const body = this.#upstream.bodies.pop()!
      const { recording, bytes } = this.#truncations[Number(/truncation number (\d+)/.exec(body)![1])]!
      openEventStream(response)
      response.end(Buffer.from(recording.text).subarray(0, bytes))
    }
  }

  static async start(format: StreamRecording['format']): Promise<TruncatingService> {
    const upstream = await startScriptedUpstream()
    const lanes = Array.from({ length: laneCount }, (_, lane) => `lane-${lane}`)
    const service = await Service.start({
      formats: [],
      settings: {
        providers: { odd: { preset: 'custom', base_url: upstream.baseUrl, format } },
        backends: Object.fromEntries(
          lanes.map((lane) => [lane, { provider: 'odd', model: 'upstream-model', failure_domain: lane }]),
        ),
        profiles: {
          'svc-router/frontier': { backends: lanes.slice(0, 1) },
          ...Object.fromEntries(lanes.map((lane) => [`truncated/${lane}`, { backends: [lane] }])),
        },
        default_plan: 'max',
        plans: { max: { name: 'Max', requests_per_minute: 1_000_000, requests_per_month: 10_000_000, premium: true } },
      },
    })
    return new TruncatingService(service, upstream)
  }

  /** The prompt and the profile that cause this truncation. */
  provoke(truncation: Truncation, lane = 0): { readonly prompt: string; readonly profile: string } {
    this.#truncations.push(truncation)
    return {
      prompt: `truncation number ${this.#truncations.length - 1}.`,
      profile: `truncated/lane-${lane % laneCount}`,
    }
  }

  /** Requests all of these, streamed in that format, many at a time. */
  async askAll(client: ConversationFormatId, truncations: readonly Truncation[]): Promise<TruncatedAnswer[]> {
    const { origin, pathname } = new URL(this.service.baseUrl)
    await using owned = new AsyncDisposableStack()
    const pool = owned.adopt(new Pool(origin, { connections: laneCount }), (one) => one.close())
    const path = `${pathname.replace(/\/$/, '')}${formatById(client).path}`
    const headers = {
      authorization: `Bearer ${this.service.key}`,
      'content-type': 'application/json',
      'user-agent': 'svc-router-tests/1.0',
    }
    // Mix early and late truncations, so that few lanes fail repeatedly.
    const mixed = truncations.map((_, at) => truncations[(at * stride) % truncations.length]!)
    const answers: TruncatedAnswer[] = []
    const ask = async (truncation: Truncation, lane: number): Promise<TruncatedAnswer> => {
      const { prompt, profile } = this.provoke(truncation, lane)
      const body = JSON.stringify({ ...clientSides[client].ask(prompt, true), model: profile })
      const response = await pool.request({ method: 'POST', path, headers, body })
      const text = await response.body.text()
      if (text.length > maxBytes) throw new Error('an answer is longer than any recording')
      const answer = { ...truncation, status: response.statusCode, text }
      answers.push(answer)
      return answer
    }
    await Promise.all(
      Array.from({ length: laneCount }, async (_, lane) => {
        let failures = 0
        for (let at = lane; at < mixed.length; at += laneCount) {
          const truncation = mixed[at]!
          const { status } = await ask(truncation, lane)
          failures = status === 200 ? 0 : failures + 1
          // Close the breaker for the following requests.
          if (failures < failuresInARow) continue
          const { recording } = truncation
          await ask({ recording, bytes: Buffer.byteLength(recording.text) }, lane)
          failures = 0
        }
      }),
    )
    return answers
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.stop()
    await this.#upstream.close()
  }
}

/** Truncations of these recordings at every byte; a common beginning is truncated once. */
function everyTruncation(recordings: readonly StreamRecording[]): Truncation[] {
  const truncations: Truncation[] = []
  for (const [index, recording] of recordings.entries()) {
    const shared = Math.max(0, ...recordings.slice(0, index).map((other) => commonBytes(recording.text, other.text)))
    const length = Buffer.byteLength(recording.text)
    for (let bytes = index === 0 ? 0 : shared + 1; bytes <= length; bytes++) truncations.push({ recording, bytes })
  }
  return truncations
}

/**
 * The truncations for this run: in a long run all of them, otherwise those near the end of an event or of the answer,
 * and one in 32 of the rest.
 */
export function sampledTruncations(recordings: readonly StreamRecording[]): Truncation[] {
  const truncations = everyTruncation(recordings)
  if (isLongRun) return truncations
  const places = new Map(recordings.map((recording) => [recording, placesOf(recording)]))
  return truncations.filter((truncation, at) => {
    const isNear = places.get(truncation.recording)!.some((place) => Math.abs(truncation.bytes - place) <= nearBytes)
    return isNear || at % sampledEvery === 0
  })
}

function placesOf({ boundaries, completeBytes, text }: StreamRecording): number[] {
  return [0, ...boundaries, completeBytes, Buffer.byteLength(text)]
}

/** Truncations of a recording at the end of each of its events, and one byte before and after. */
export function truncationsAtEvents(recording: StreamRecording): Truncation[] {
  const length = Buffer.byteLength(recording.text)
  const places = [0, ...recording.boundaries].flatMap((place) => [place - 1, place, place + 1])
  return [...new Set(places)].filter((bytes) => bytes >= 0 && bytes <= length).map((bytes) => ({ recording, bytes }))
}

function commonBytes(one: string, other: string): number {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  let at = 0
  while (at < left.length && left[at] === right[at]) at += 1
  return at
}

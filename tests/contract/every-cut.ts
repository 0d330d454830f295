import { Pool } from 'undici'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import { formatById } from '../../src/formats/formats.ts'
import { openEventStream, startScriptedUpstream, type ScriptedUpstream } from '../faults/scripted-upstream.ts'
import { isLongRun } from '../long-run.ts'
import { Service } from '../service.ts'
import { clientSides } from './client-sides.ts'
import type { StreamRecording } from './recordings.ts'

/** Requests at once; each lane has a backend of its own, so that what fails in one is not held against another. */
const laneCount = 64
/** A backend that fails five times in a row is left alone, and the last of an earlier call may have been failures. */
const failuresInARow = 2
const maxBytes = 64 * 1024
/** A prime that no number of cuts is a multiple of: each is met once. */
const stride = 1_000_003
/** What a short run takes: cuts this near to an end, and one in so many of the others. */
const nearBytes = 3
const sampledEvery = 8

/** One answer of a provider that ends well formed, behind so many of its bytes. */
export interface Cut {
  readonly recording: StreamRecording
  readonly bytes: number
}

/** What a caller got of it. */
export interface CutAnswer extends Cut {
  readonly status: number
  readonly text: string
}

/** The service behind which a provider cuts its answers where a request tells it to. */
export class CuttingService implements AsyncDisposable {
  readonly service: Service
  readonly #upstream: ScriptedUpstream
  readonly #cuts: Cut[] = []

  private constructor(service: Service, upstream: ScriptedUpstream) {
    this.service = service
    this.#upstream = upstream
    upstream.answer = (_request, response) => {
      const body = this.#upstream.bodies.pop()!
      const { recording, bytes } = this.#cuts[Number(/cut number (\d+)/.exec(body)![1])]!
      openEventStream(response)
      response.end(Buffer.from(recording.text).subarray(0, bytes))
    }
  }

  static async start(format: StreamRecording['format']): Promise<CuttingService> {
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
          ...Object.fromEntries(lanes.map((lane) => [`cut/${lane}`, { backends: [lane] }])),
        },
        default_plan: 'max',
        plans: { max: { name: 'Max', requests_per_minute: 1_000_000, requests_per_month: 10_000_000, premium: true } },
      },
    })
    return new CuttingService(service, upstream)
  }

  /** The prompt and the profile that provoke this cut. */
  provoke(cut: Cut, lane = 0): { readonly prompt: string; readonly profile: string } {
    this.#cuts.push(cut)
    return { prompt: `cut number ${this.#cuts.length - 1}.`, profile: `cut/lane-${lane % laneCount}` }
  }

  /** Asks for all of these in that format, streamed, many at a time. */
  async askAll(client: ConversationFormatId, cuts: readonly Cut[]): Promise<CutAnswer[]> {
    const { origin, pathname } = new URL(this.service.baseUrl)
    await using owned = new AsyncDisposableStack()
    const pool = owned.adopt(new Pool(origin, { connections: laneCount }), (one) => one.close())
    const path = `${pathname.replace(/\/$/, '')}${formatById(client).path}`
    const headers = {
      authorization: `Bearer ${this.service.key}`,
      'content-type': 'application/json',
      'user-agent': 'svc-router-tests/1.0',
    }
    // Early and late cuts by turns, so that few lanes fail again and again.
    const mixed = cuts.map((_, at) => cuts[(at * stride) % cuts.length]!)
    const answers: CutAnswer[] = []
    const ask = async (cut: Cut, lane: number): Promise<CutAnswer> => {
      const { prompt, profile } = this.provoke(cut, lane)
      const body = JSON.stringify({ ...clientSides[client].ask(prompt, true), model: profile })
      const response = await pool.request({ method: 'POST', path, headers, body })
      const text = await response.body.text()
      if (text.length > maxBytes) throw new Error('an answer is longer than any recording')
      const answer = { ...cut, status: response.statusCode, text }
      answers.push(answer)
      return answer
    }
    await Promise.all(
      Array.from({ length: laneCount }, async (_, lane) => {
        let failures = 0
        for (let at = lane; at < mixed.length; at += laneCount) {
          const cut = mixed[at]!
          const { status } = await ask(cut, lane)
          failures = status === 200 ? 0 : failures + 1
          // Whatever follows is asked of a backend in good health.
          if (failures < failuresInARow) continue
          const { recording } = cut
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

/** Every cut of these recordings at any byte; what two of them begin with is cut once. */
function everyCut(recordings: readonly StreamRecording[]): Cut[] {
  const cuts: Cut[] = []
  for (const [index, recording] of recordings.entries()) {
    const shared = Math.max(0, ...recordings.slice(0, index).map((other) => commonBytes(recording.text, other.text)))
    const length = Buffer.byteLength(recording.text)
    for (let bytes = index === 0 ? 0 : shared + 1; bytes <= length; bytes++) cuts.push({ recording, bytes })
  }
  return cuts
}

/**
 * What a run takes of `everyCut`: in a long run all of it, otherwise those near the end of an event or of the answer,
 * and every eighth of the rest.
 */
export function cutsToTake(recordings: readonly StreamRecording[]): Cut[] {
  const cuts = everyCut(recordings)
  if (isLongRun) return cuts
  const places = new Map(recordings.map((recording) => [recording, placesOf(recording)]))
  return cuts.filter((cut, at) => {
    const isNear = places.get(cut.recording)!.some((place) => Math.abs(cut.bytes - place) <= nearBytes)
    return isNear || at % sampledEvery === 0
  })
}

function placesOf({ boundaries, completeBytes, text }: StreamRecording): number[] {
  return [0, ...boundaries, completeBytes, Buffer.byteLength(text)]
}

/** The cuts of a recording at the end of each of its events, and one byte to either side. */
export function cutsAtEvents(recording: StreamRecording): Cut[] {
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

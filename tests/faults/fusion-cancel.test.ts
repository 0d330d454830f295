import { request, type ClientRequest, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import { HeldTime } from '../held-time.ts'
import { casesOf } from '../long-run.ts'
import { Service } from '../service.ts'
import type { FusionRole } from '../simulation/fusion-roles.ts'
import { quantile } from '../simulation/statistics.ts'
import { beginStream, endStream, sayWhole, startDeliberatingUpstream, undecided } from './deliberating-upstream.ts'

const cancels = casesOf({ sample: 150, all: 1_000 })
const warmUps = 20
const atOnce = 10
const settleWithinMs = 5_000
const closedWithinMs = 100
const limitMs = 120_000
/** A fusion takes about a third of a second: clients disconnect at any time during it, and some after its end. */
const panelMs = [10, 90] as const
const judgeMs = [10, 60] as const
const pieces = 12
const pieceEveryMs = 10
const longestStayMs = 400

/** One call to a model: its role, and when its connection closed without an answer or its answer was complete. */
interface Call {
  readonly role: FusionRole
  readonly begunMs: number
  cutMs: number | undefined
  isComplete: boolean
}

test(
  `${cancels} clients disconnect at random, and every model call is closed within ${closedWithinMs} ms`,
  async () => {
    const random = seededRandom(4)
    const between = ([from, to]: readonly [number, number]): number => from + random() * (to - from)
    const calls = new Map<string, Call[]>()
    let open = 0

    const play = async (role: FusionRole, response: ServerResponse, body: string): Promise<void> => {
      const call: Call = { role, begunMs: performance.now(), cutMs: undefined, isComplete: false }
      const marker = /fusion--?\d+-/.exec(body)![0]
      calls.set(marker, [...(calls.get(marker) ?? []), call])
      open += 1
      response.once('close', () => {
        open -= 1
        call.isComplete = response.writableFinished
        if (!call.isComplete) call.cutMs = performance.now()
      })
      if (role === 'judge') {
        await delay(between(judgeMs))
        if (!response.destroyed) sayWhole(response, undecided)
      } else if (role === 'panel') {
        await delay(between(panelMs))
        if (!response.destroyed) sayWhole(response, `An answer of ${random()}.`)
      } else {
        for (let piece = 0; piece < pieces && !response.destroyed; piece++) {
          beginStream(response, `piece ${piece} `)
          await delay(pieceEveryMs)
        }
        if (!response.destroyed) endStream(response)
      }
    }

    const upstream = await startDeliberatingUpstream(play)
    const names = ['alpha', 'beta', 'gamma']
    const provider = () => ({ preset: 'custom', base_url: upstream.baseUrl, format: 'openai-chat' })
    const service = await Service.start({
      formats: ['openai-chat'],
      settings: {
        providers: Object.fromEntries(names.map((name) => [name, provider()])),
        backends: Object.fromEntries(names.map((name) => [name, { provider: name, model: `model-of-${name}` }])),
        plans: {
          max: {
            name: 'Max',
            requests_per_minute: 100_000,
            requests_per_month: 100_000,
            premium: true,
            fusions_at_once: 1_000,
          },
        },
      },
    })
    try {
      const left = new Map<string, number>()
      const stages = new Map<string, number>()
      const leave = async (number: number): Promise<void> => {
        const marker = `fusion-${number}-`
        const asked = ask(service, marker)
        await delay(random() * longestStayMs)
        const leftMs = performance.now()
        const seen = calls.get(marker) ?? []
        const stage = seen.findLast(({ isComplete }) => !isComplete)?.role ?? (seen.length === 0 ? 'before' : 'after')
        stages.set(stage, (stages.get(stage) ?? 0) + 1)
        asked.destroy()
        left.set(marker, leftMs)
      }
      const lane = async (first: number): Promise<void> => {
        for (let number = first; number < cancels; number += atOnce) await leave(number)
      }
      for (let number = -warmUps; number < 0; number++) await leave(number)
      await expect.poll(() => open, { timeout: settleWithinMs }).toBe(0)
      calls.clear()
      stages.clear()
      using held = new HeldTime()
      await Promise.all(Array.from({ length: atOnce }, (_, first) => lane(first)))
      await expect.poll(() => open, { timeout: settleWithinMs }).toBe(0)
      const lateMs = [...calls].flatMap(([marker, of]) =>
        of.flatMap(({ begunMs, cutMs }) => {
          const leftMs = left.get(marker)!
          // Calls that start after the disconnect count, too: there must be none.
          const endMs = cutMs ?? (begunMs > leftMs ? begunMs : undefined)
          return endMs === undefined ? [] : [endMs - leftMs - held.within(leftMs, endMs)]
        }),
      )
      const p99 = quantile(lateMs, 0.99)
      process.stdout.write(
        `${cancels} cancels, by what was under way: ${JSON.stringify(Object.fromEntries(stages))}; ${lateMs.length} calls cut, ` +
          `p50 ${quantile(lateMs, 0.5).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, at most ${Math.max(...lateMs).toFixed(1)} ms\n`,
      )
      expect(p99).toBeLessThanOrEqual(closedWithinMs)
      for (const role of ['panel', 'judge', 'writer']) expect(stages.get(role), role).toBeGreaterThan(cancels / 100)
      // Each admitted request ends, and was charged at most once. The record of the last one is written after its answer.
      const listRecords = () => service.store.listRequests({ limit: 2 * cancels })
      const ended = () => service.events.filter(({ event }) => event === 'request').length
      const unended = async (): Promise<number> => {
        const records = await listRecords()
        return records.filter(({ state }) => state !== 'done').length + Math.abs(records.length - ended())
      }
      await expect.poll(unended, { timeout: settleWithinMs }).toBe(0)
      expect(ended()).toBeGreaterThan(0.9 * cancels)
      expect(service.events.filter(({ event }) => event === 'internal_error')).toEqual([])
      for (const { charged } of await listRecords()) expect([0, 1]).toContain(charged)
    } finally {
      await service.stop()
      await upstream.close()
    }
  },
  limitMs,
)

function ask({ origin, key }: Service, marker: string): ClientRequest {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'user-agent': 'tests/1' }
  const sent = request(`${origin}/v1/chat/completions`, { method: 'POST', headers, agent: false }, (response) => {
    response.on('error', () => {})
    response.resume()
  })
  // The connection is destroyed on purpose.
  sent.on('error', () => {})
  const messages = [{ role: 'user', content: `How many? ${marker}` }]
  sent.end(JSON.stringify({ model: 'svc-router/fusion', stream: true, messages }))
  return sent
}

import { readdirSync, readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { anyText } from '../any-text.ts'
import { errorOf } from '../refusals.ts'
import type { Service } from '../service.ts'
import { readAnswer } from '../wire.ts'
import { HostileService } from './hostile-service.ts'

let hostile: HostileService
let service: Service

beforeAll(async () => {
  hostile = await HostileService.start()
  service = hostile.service
})
afterAll(() => service.stop())
afterEach(() => hostile.expectUnharmed())

describe('bodies composed at random from recorded ones', () => {
  const recordings = recordedBodies()
  /** What replaces a part of a body. */
  const junk = fc.oneof(
    fc.constantFrom(
      null,
      true,
      0,
      -1,
      1e308,
      '',
      'x',
      [],
      {},
      [[]],
      [null],
      { type: 'text' },
      '\u0000',
      '\ud800',
      'svc-router:fusion',
    ),
    anyText({ maxLength: 30 }),
    fc.jsonValue({ maxDepth: 3 }),
  )
  const change = fc.record({
    where: fc.array(fc.nat(), { minLength: 1, maxLength: 8 }),
    how: fc.constantFrom('replace', 'remove', 'double', 'rename'),
    junk,
  })

  test('500 composed bodies get an answer or a clear 4xx, never a 5xx', async () => {
    const seen = new Map<number, number>()
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...recordings),
        fc.array(change, { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        async (recording, changes, other) => {
          let body: unknown = { ...recording.body, model: other ? 'team/other' : 'svc-router/frontier' }
          for (const { where, how, junk: put } of changes) body = changed(body, where, how, put)
          const answer = await readAnswer(await service.post(recording.path, JSON.stringify(body) ?? 'null'))
          seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1)
          expect(answer.status, answer.text).toBeLessThan(500)
          if (answer.status !== 200) expect(errorOf(answer).message.length).toBeLessThanOrEqual(240)
        },
      ),
      { numRuns: 500, endOnFailure: false },
    )
    // Both kinds must occur: otherwise the changes are too small or too large.
    expect(seen.get(200) ?? 0).toBeGreaterThan(20)
    expect(seen.get(400) ?? 0).toBeGreaterThan(20)
  }, 120_000)

  test('100 bodies with random bytes changed get an answer or a clear 4xx, never a 5xx', async () => {
    const edit = fc.tuple(fc.nat(), fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', '\u0000', 'é', ' ', ''))
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...recordings),
        fc.array(edit, { minLength: 1, maxLength: 3 }),
        async (recording, edits) => {
          let text = JSON.stringify({ ...recording.body, model: 'svc-router/frontier' })
          for (const [place, put] of edits) {
            const at = place % text.length
            text = text.slice(0, at) + put + text.slice(at + 1)
          }
          const answer = await readAnswer(await service.post(recording.path, text))
          expect(answer.status, answer.text).toBeLessThan(500)
        },
      ),
      { numRuns: 100 },
    )
  }, 60_000)
})

interface Recording {
  readonly path: '/chat/completions' | '/responses'
  readonly body: Record<string, unknown>
}

function recordedBodies(): Recording[] {
  const folder = new URL('../fixtures/client-requests/', import.meta.url)
  return readdirSync(folder).flatMap((name) => {
    const { path, body } = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as {
      path?: string
      body?: Record<string, unknown>
    }
    const known = path?.replace(/^\/v1/, '')
    if (body === undefined || (known !== '/chat/completions' && known !== '/responses')) return []
    return [{ path: known, body }]
  })
}

/** A copy of a value with one part changed; `where` selects the part. */
function changed(whole: unknown, where: readonly number[], how: string, put: unknown): unknown {
  const [turn = 0, ...rest] = where
  if (typeof whole !== 'object' || whole === null) return put
  const entries = Object.entries(whole)
  if (entries.length === 0) return put
  const [name, held] = entries[turn % entries.length]!
  const isDeeper = rest.length > 0 && typeof held === 'object' && held !== null
  const next = isDeeper ? changed(held, rest, how, put) : put
  if (Array.isArray(whole)) {
    const list = [...(whole as unknown[])]
    if (!isDeeper && how === 'remove') list.splice(Number(name), 1)
    else if (!isDeeper && how === 'double') list.push(held)
    else list[Number(name)] = next
    return list
  }
  const { [name]: _, ...others } = whole as Record<string, unknown>
  if (!isDeeper && how === 'remove') return others
  if (!isDeeper && how === 'rename') return { ...others, [`${name}x`]: held }
  return { ...others, [name]: next }
}

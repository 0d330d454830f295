import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatIds, streamsOf } from '../contract/recordings.ts'
import { truncationsAtEvents, TruncatingService, type Truncation } from '../contract/truncations.ts'
import { isLongRun } from '../long-run.ts'
import { realClients } from './reported-success.ts'

const withinMs = 60_000
const atOnce = 16
/** After this many failures, a complete answer keeps the breaker closed. */
const failuresInARow = 2
const names = Object.keys(realClients)
/** In `npm test` a client gets one in five of the truncations, and the next client the next ones. */
const stride = isLongRun ? 1 : 5

/** The truncations that a client gets: always those at and after the end of the answer. */
function truncationsFor(name: string, format: (typeof formatIds)[number]): Truncation[] {
  const offset = names.indexOf(name)
  return streamsOf(format)
    .flatMap(truncationsAtEvents)
    .filter(({ recording, bytes }, at) => bytes >= recording.completeBytes - 1 || (at + offset) % stride === 0)
}

describe.each(formatIds)(
  'an answer of a provider of %s that is truncated at, before, and after each event',
  (format) => {
    let truncating: TruncatingService
    beforeAll(async () => {
      truncating = await TruncatingService.start(format)
    })
    afterAll(() => truncating[Symbol.asyncDispose]())

    test.each(names)(
      '%s reports a failure, and success only for the complete answer',
      { timeout: withinMs },
      async (name) => {
        const truncations = truncationsFor(name, format)
        const reportsSuccess = async (truncation: Truncation, lane: number): Promise<boolean> => {
          const { prompt, profile } = truncating.provoke(truncation, lane)
          const { baseUrl: baseURL, key: apiKey } = truncating.service
          return realClients[name]!({ baseURL, apiKey, model: profile, prompt })
        }
        const wrong: unknown[] = []
        const succeeded = { truncated: 0, whole: 0 }
        await Promise.all(
          Array.from({ length: atOnce }, async (_, lane) => {
            let failures = 0
            for (let at = lane; at < truncations.length; at += atOnce) {
              const { recording, bytes } = truncations[at]!
              const isWhole = bytes >= recording.completeBytes
              const saysWell = await reportsSuccess(truncations[at]!, lane)
              if (saysWell !== isWhole) wrong.push({ name: recording.name, bytes, isWhole })
              succeeded[isWhole ? 'whole' : 'truncated'] += 1
              failures = isWhole ? 0 : failures + 1
              if (failures < failuresInARow) continue
              await reportsSuccess({ recording, bytes: Buffer.byteLength(recording.text) }, lane)
              failures = 0
            }
          }),
        )
        expect(wrong).toEqual([])
        expect(succeeded.truncated).toBeGreaterThanOrEqual(20 / stride)
        expect(succeeded.whole).toBeGreaterThan(3)
      },
    )
  },
)

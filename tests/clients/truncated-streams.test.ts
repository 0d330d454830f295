import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatIds, streamsOf } from '../contract/recordings.ts'
import { truncationsAtEvents, TruncatingService, type Truncation } from '../contract/truncations.ts'
import { realClients } from './reported-success.ts'

const withinMs = 60_000
const atOnce = 16
/** After this many failures, a complete answer keeps the breaker closed. */
const failuresInARow = 2

describe.each(formatIds)(
  'an answer of a provider of %s that is truncated at, before, and after each event',
  (format) => {
    let truncating: TruncatingService
    beforeAll(async () => {
      truncating = await TruncatingService.start(format)
    })
    afterAll(() => truncating[Symbol.asyncDispose]())

    test.each(Object.keys(realClients))(
      '%s reports a failure, and success only for the complete answer',
      { timeout: withinMs },
      async (name) => {
        const truncations = streamsOf(format).flatMap(truncationsAtEvents)
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
        expect(succeeded.truncated).toBeGreaterThan(20)
        expect(succeeded.whole).toBeGreaterThan(3)
      },
    )
  },
)

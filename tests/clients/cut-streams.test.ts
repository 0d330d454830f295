import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cutsAtEvents, CuttingService, type Cut } from '../contract/every-cut.ts'
import { formatIds, streamsOf } from '../contract/recordings.ts'
import { realClients } from './reported-success.ts'

const withinMs = 60_000
const atOnce = 16
/** The same whole answer between failures keeps a backend in good health. */
const failuresInARow = 2

describe.each(formatIds)('an answer of a provider of %s that is cut at, before and behind each event', (format) => {
  let cutting: CuttingService
  beforeAll(async () => {
    cutting = await CuttingService.start(format)
  })
  afterAll(() => cutting[Symbol.asyncDispose]())

  test.each(Object.keys(realClients))(
    'is told as a failure by %s, and as a success where it is whole',
    { timeout: withinMs },
    async (name) => {
      const cuts = streamsOf(format).flatMap(cutsAtEvents)
      const told = async (cut: Cut, lane: number): Promise<boolean> => {
        const { prompt, profile } = cutting.provoke(cut, lane)
        const { baseUrl: baseURL, key: apiKey } = cutting.service
        return realClients[name]!({ baseURL, apiKey, model: profile, prompt })
      }
      const wrong: unknown[] = []
      const succeeded = { cut: 0, whole: 0 }
      await Promise.all(
        Array.from({ length: atOnce }, async (_, lane) => {
          let failures = 0
          for (let at = lane; at < cuts.length; at += atOnce) {
            const { recording, bytes } = cuts[at]!
            const isWhole = bytes >= recording.completeBytes
            const saysWell = await told(cuts[at]!, lane)
            if (saysWell !== isWhole) wrong.push({ name: recording.name, bytes, isWhole })
            succeeded[isWhole ? 'whole' : 'cut'] += 1
            failures = isWhole ? 0 : failures + 1
            if (failures < failuresInARow) continue
            await told({ recording, bytes: Buffer.byteLength(recording.text) }, lane)
            failures = 0
          }
        }),
      )
      expect(wrong).toEqual([])
      expect(succeeded.cut).toBeGreaterThan(20)
      expect(succeeded.whole).toBeGreaterThan(3)
    },
  )
})

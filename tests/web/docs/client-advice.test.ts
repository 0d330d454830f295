import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { errorCodes } from '../../../src/domain/error-message.ts'
import { linksFor } from '../../../src/domain/links.ts'
import { openaiConventions } from '../../../src/formats/openai/client-conventions.ts'
import { errorBody, errorHeaders } from '../../../src/http/error-response.ts'
import { clientWords, socketCodes, streamCode } from '../../../src/web/docs/client-advice.ts'
import { exampleOf } from '../../../src/web/docs/error-docs.ts'
import { withoutSleeping } from '../../clients/without-sleeping.ts'

const requestId = 'req_0VQ3xS8k00aB7cD9eF1gH3jK'
const links = linksFor('https://router.example.com')
const sdkSleep = /\/openai\/(.*\/)?sleep\./

/** How often the SDK sends a request that gets this error, and how long it waits in between, in milliseconds. */
async function askWithSdk(code: (typeof errorCodes)[number]): Promise<{ sent: number; slept: number[] }> {
  const error = exampleOf(code)
  const context = { requestId, links, conventions: openaiConventions, nowMs: 0, signals: undefined, model: true }
  const list = errorHeaders(error, context)
  const headers = new Headers({ 'content-type': 'application/json' })
  for (let at = 0; at < list.length; at += 2) headers.set(list[at]!, list[at + 1]!)
  let sent = 0
  const client = new OpenAI({
    apiKey: 'made-up',
    baseURL: 'https://router.example.com/v1',
    fetch: async () => {
      sent++
      return new Response(errorBody(error, context), { status: error.status, headers })
    },
  })
  const slept = await withoutSleeping(sdkSleep, async () => {
    const asked = client.responses.create({ model: 'svc-router/frontier', input: 'Hello' })
    await expect(asked).rejects.toMatchObject({ status: error.status, requestID: requestId })
  })
  return { sent, slept }
}

const inUpgrades = 'upgrade_required'

test.each(errorCodes.filter((code) => !socketCodes.includes(code) && code !== streamCode && code !== inUpgrades))(
  '%s: the page says what the OpenAI SDK does',
  async (code) => {
    const [[client, words] = []] = clientWords(exampleOf(code))
    expect(client).toBe('OpenAI SDK')
    const { sent, slept } = await askWithSdk(code)
    if (words!.startsWith('throws immediately')) return expect(sent).toBe(1)
    expect(words).toMatch(/^retries twice/)
    expect(sent).toBe(3)
    const { retryAfterSeconds } = exampleOf(code).facts
    if (words!.includes('waiting as `Retry-After` says'))
      expect(slept).toEqual([retryAfterSeconds! * 1000, retryAfterSeconds! * 1000])
    else expect(slept[0]! + slept[1]!).toBeLessThan(3000)
  },
)

test('errors that only WebSockets carry say nothing about the clients', () => {
  for (const code of socketCodes) expect(clientWords(exampleOf(code))).toEqual([])
})

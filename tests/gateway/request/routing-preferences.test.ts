import { describe, expect, test } from 'vitest'
import { clientFormatIds, formatIds, type ClientFormatId } from '../../../src/domain/format-id.ts'
import type { JsonObject } from '../../../src/domain/json.ts'
import { FakeGateway } from '../fake-gateway.ts'

const messages = [{ role: 'user', content: 'Why?' }]
const bodies: Readonly<Partial<Record<ClientFormatId, JsonObject>>> = {
  'openai-chat': { messages },
  'openai-responses': { input: 'Why?', store: false },
  'anthropic-messages': { messages, max_tokens: 10 },
}
const conventions = clientFormatIds.filter((format) => bodies[format] !== undefined)

/** Waits for what follows from resolved promises. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

describe.each(conventions)('routing preferences in %s', (format) => {
  const body = bodies[format]!

  test.each(formatIds)('choose the backend and are not sent to it, in %s', async (backendFormat) => {
    const gateway = new FakeGateway([backendFormat, backendFormat])
    void gateway.answer(format, { ...body, routing: { only: ['b1'] } }).catch(() => {})
    await settle()
    const [first, second] = gateway.backends
    expect([first!.requests.length, second!.requests.length]).toEqual([0, 1])
    const sent = Buffer.from(second!.requests[0]!.body).toString()
    expect(sent).toContain('Why?')
    expect(sent).not.toContain('routing')
    expect(sent).not.toContain('b1')
  })

  test('that no backend meets are refused before admission', async () => {
    const gateway = new FakeGateway(['openai-chat'])
    await expect(gateway.answer(format, { ...body, routing: { zero_retention: true } })).rejects.toMatchObject({
      code: 'no_backend_matches',
    })
    await expect(gateway.answer(format, { ...body, routing: { zero: true } })).rejects.toMatchObject({
      code: 'invalid_request',
    })
    expect([gateway.admitted, gateway.backends[0]!.requests.length]).toEqual([0, 0])
  })

  test('are noted in the record, because a replay cannot repeat them', async () => {
    for (const [given, expected] of [
      [{ ...body, routing: { sort: 'price' } }, true],
      [body, undefined],
    ] as const) {
      const gateway = new FakeGateway(['openai-chat'])
      const end = gateway.answer(format, given).catch(() => {})
      await settle()
      gateway.backends[0]!.head(400)
      gateway.backends[0]!.end()
      await end
      const [first] = gateway.settled.at(-1)!.outcome.attempts
      expect([first!.ownRouting, typeof first!.kind]).toEqual([expected, 'number'])
    }
  })

  test('cannot widen what the profile requires', async () => {
    const gateway = new FakeGateway(['openai-chat'])
    gateway.profile.routing = { regions: ['eu'] }
    await expect(gateway.answer(format, { ...body, routing: { regions: ['us'] } })).rejects.toMatchObject({
      code: 'no_backend_matches',
    })
    await expect(gateway.answer(format, body)).rejects.toMatchObject({ code: 'no_backend_matches' })
  })
})

test('a member named twice reaches no provider, whichever of the two counts', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  const text = JSON.stringify({ model: 'p', routing: { sort: 'price' }, messages }).replace(
    '}',
    '},"routing":{"sort":"order"}',
  )
  void gateway.answerText('openai-chat', text).catch(() => {})
  await settle()
  const sent = gateway.backends[0]!.requests.map(({ body }) => Buffer.from(body).toString())
  expect(sent.join('')).not.toContain('routing')
})

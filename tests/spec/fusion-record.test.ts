import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import { answer, disconnectDuring, recordOf, saidIn, scriptedServices } from './fused-answers.ts'

const startScripted = scriptedServices()

const model = 'svc-router/fusion'
const judged = judgeReply({ scores: { A: 6, B: 6, C: 6 }, isMaterial: true })
const down: ScriptStep = { do: 'status', status: 500, repeat: true }

test("a fusion's trail is part of its request's record, and its sub-calls add up", async () => {
  const service = await startScripted([
    [answer('Alpha says forty.'), answer(judged), answer(judged), answer('Written.')],
    [answer('Beta says fifty.')],
    [down],
  ])
  const response = await service.chat({ model })
  expect(response.status).toBe(200)
  const { fusions, usage } = await recordOf(service, response.headers.get('x-request-id'))
  expect(fusions).toHaveLength(1)
  const [fusion] = fusions!
  expect(fusion).toMatchObject({
    preset: 'balanced',
    mode: 'synthesised',
    asked: 3,
    answered: 2,
    quorum: 2,
    verdict: 'synthesize',
    answerType: 'open',
    disagreements: 1,
    degraded: ['member_lost'],
  })
  expect(fusion!.dropOuts[0]).toEqual({ member: 'gamma', why: 'server_error' })
  const { calls } = fusion!
  expect(calls.length).toBe(service.providers.reduce((sum, provider) => sum + provider.counts().requests, 0))
  for (const name of ['inputTokens', 'outputTokens', 'cachedTokens', 'reasoningTokens'] as const)
    expect(calls.reduce((sum, call) => sum + (call.usage?.[name] ?? 0), 0)).toBe(usage![name])
})

test('a request that one model answers has no trail', async () => {
  const service = await startScripted([])
  const response = await service.chat()
  await response.text()
  expect(await recordOf(service, response.headers.get('x-request-id'))).not.toHaveProperty('fusions')
})

test('the trail reports that no member answered, or that the client disconnected', async () => {
  const failing = await startScripted([[down], [down], [down]])
  const refused = await failing.chat({ model })
  expect(refused.status).toBe(503)
  const { fusions } = await recordOf(failing, refused.headers.get('x-request-id'))
  expect(fusions![0]).toMatchObject({
    asked: 3,
    answered: 0,
    errorCode: 'server_is_overloaded',
    degraded: ['member_lost', 'below_quorum', 'panel_failed'],
  })
  expect(fusions![0]).not.toHaveProperty('mode')
  await failing.stop()

  const silence: ScriptStep[] = [{ do: 'silence', repeat: true }]
  const silent = await startScripted([silence, silence, silence])
  const event = await disconnectDuring(silent, { path: '/responses', body: { model, input: 'How many?' } })
  const record = await recordOf(silent, event.requestId)
  expect(record.errorCode).toBe('client_closed')
  expect(record.fusions![0]).toMatchObject({ asked: 3, answered: 0, errorCode: 'client_closed' })
  expect(record.fusions![0]!.calls.map(({ status }) => status)).toEqual(['cut', 'cut', 'cut'])
})

test.each([true, false])(
  'the data folder and the log contain no text of callers, members, judge, or writer; streamed: %s',
  async (stream) => {
    const canaries = [
      'CANARY-PROMPT',
      'CANARY-SYSTEM',
      'CANARY-ALPHA',
      'CANARY-BETA',
      'JUDGE-SECRET',
      'CANARY-WRITTEN',
      'CANARY-SCHEMA',
    ]
    const service = await startScripted([
      [answer('CANARY-ALPHA forty.'), answer(judged), answer(judged), answer('CANARY-WRITTEN answer.')],
      [answer('CANARY-BETA fifty.')],
      [down],
    ])
    const parameters = { type: 'object', properties: { 'CANARY-SCHEMA': { type: 'string' } } }
    const response = await service.chat({
      model,
      stream,
      messages: [
        { role: 'system', content: 'CANARY-SYSTEM' },
        { role: 'user', content: 'CANARY-PROMPT' },
      ],
      tools: [{ type: 'function', function: { name: 'look', parameters } }],
    })
    expect(saidIn(await response.text())).toContain('CANARY-WRITTEN')
    const record = await recordOf(service, response.headers.get('x-request-id'))
    expect(record.fusions![0]!.calls.length).toBeGreaterThan(3)
    const seen = [JSON.stringify(record), JSON.stringify(service.events)]
    for (const name of readdirSync(service.config.dataDir, { recursive: true, withFileTypes: true }))
      if (name.isFile()) seen.push(readFileSync(join(name.parentPath, name.name), 'latin1'))
    for (const canary of canaries) for (const text of seen) expect(text.includes(canary), canary).toBe(false)
  },
)

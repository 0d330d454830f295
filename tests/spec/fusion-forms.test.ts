import { describe, expect, test } from 'vitest'
import type { FormatId } from '../../src/domain/format-id.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { pixel } from '../clients/openai-clients.ts'
import type { Service } from '../service.ts'
import { shareServices } from '../shared-service.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import { answer, recordOf, saidIn } from './fused-answers.ts'

const model = 'svc-router/fusion'
const judged = judgeReply({ answerType: 'structured', scores: { A: 7, B: 7, C: 7 } })
const schema = {
  type: 'object',
  properties: { city: { type: 'string' }, people: { type: 'integer' }, river: { type: 'string' } },
  required: ['city', 'people', 'river'],
  additionalProperties: false,
}
const text = (city: string, people: number, river: string): string => JSON.stringify({ city, people, river })

const share = shareServices()
let service: Service | undefined

/** Models of three families, so that the agreement of two counts. */
async function start(facts: Record<string, object> = {}, formats?: readonly FormatId[]): Promise<Service> {
  const named = { alpha: 'gpt-5', beta: 'claude-opus-4', gamma: 'gemini-3-pro' }
  service = await share({
    facts: Object.fromEntries(Object.entries(named).map(([name, called]) => [name, { model: called, ...facts[name] }])),
    ...(formats && { formats }),
  })
  return service
}

const sentTo = (index: number): JsonObject[] =>
  service!.providers[index]!.captured().map(({ body }) => JSON.parse(body) as JsonObject)

const asks = [
  {
    path: '/chat/completions',
    body: {
      model,
      messages: [{ role: 'user', content: 'Which city?' }],
      response_format: { type: 'json_schema', json_schema: { name: 'city', strict: true, schema } },
    },
  },
  {
    path: '/responses',
    body: {
      model,
      input: 'Which city?',
      text: { format: { type: 'json_schema', name: 'city', strict: true, schema } },
    },
  },
].flatMap(({ path, body }) => [
  { name: `${path}, whole`, path, body: { ...body, stream: false } },
  { name: `${path}, streamed`, path, body: { ...body, stream: true } },
])

describe.each(asks)('an object of a schema, $name', ({ path, body }) => {
  test('if two model families agree, the object is built field by field without asking the writer', async () => {
    await start()
    const [alpha, beta, gamma] = service!.providers
    alpha!.script([answer(text('Oslo', 700_000, 'Akerselva')), answer(judged)])
    beta!.script([answer(text('Oslo', 700_000, 'Akerselva')), answer(judged)])
    gamma!.script([answer('It is Bergen, I would say.'), answer(judged)])
    const response = await service!.post(path, body)
    const said = saidIn(await response.text())
    expect(JSON.parse(said)).toEqual({ city: 'Oslo', people: 700_000, river: 'Akerselva' })
    const { fusions } = await recordOf(service!, response.headers.get('x-request-id'))
    expect(fusions![0]).toMatchObject({ mode: 'merged' })
    expect(fusions![0]!.calls.map(({ role }) => role)).not.toContain('synthesis')
    const panel = [0, 1, 2].map((index) => JSON.stringify(sentTo(index)[0]))
    for (const sent of panel) expect(sent).toContain('"city"')
  })

  test('agreed values are used whatever the writer produces, and the schema is always followed', async () => {
    await start()
    const [alpha, beta, gamma] = service!.providers
    alpha!.script([answer(text('Oslo', 1, 'A')), answer(judged), answer(text('Rome', 4, 'D'))])
    beta!.script([answer(text('Oslo', 2, 'B')), answer(judged), answer(text('Rome', 4, 'D'))])
    gamma!.script([answer(text('Oslo', 3, 'C')), answer(judged), answer(text('Rome', 4, 'D'))])
    const response = await service!.post(path, body)
    expect(JSON.parse(saidIn(await response.text()))).toEqual({ city: 'Oslo', people: 4, river: 'D' })

    const prose = answer('Here you are: Rome.')
    alpha!.script([answer(text('Oslo', 1, 'A')), answer(judged), prose, prose])
    beta!.script([answer(text('Oslo', 2, 'B')), answer(judged), prose, prose])
    gamma!.script([answer(text('Oslo', 3, 'C')), answer(judged), prose, prose])
    const second = await service!.post(path, body)
    const fallen = JSON.parse(saidIn(await second.text())) as JsonObject
    expect(fallen).toMatchObject({ city: 'Oslo' })
    expect(Object.keys(fallen)).toEqual(['city', 'people', 'river'])
  })
})

describe('images', () => {
  const image = { type: 'image_url', image_url: { url: pixel } }
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] }]

  test('images reach only members known to read them, and the others are not asked', async () => {
    await start({
      alpha: { capabilities: { image_input: true } },
      beta: { capabilities: { image_input: false } },
      gamma: { capabilities: { image_input: true } },
    })
    const response = await service!.chat({ model, messages })
    expect(response.status, await response.text()).toBe(200)
    expect(service!.providers.map((provider) => provider.counts().requests > 0)).toEqual([true, false, true])
    for (const index of [0, 2]) expect(JSON.stringify(sentTo(index)[0])).toContain(pixel)
  })

  test("images reach an account's own model if the operator declares that it reads them", async () => {
    service = await share({ settings: { models: { own: { capabilities: { image_input: true } } } } })
    await service.connectOwn('made-up-own-credential')
    const response = await service.chat({ model, messages })
    expect(response.status, await response.text()).toBe(200)
    const { fusions } = await recordOf(service, response.headers.get('x-request-id'))
    expect(fusions![0]).toMatchObject({ isSelfPanel: true, answered: 3 })
    expect(service.providers.map((provider) => provider.counts().requests > 0)).toEqual([true, false, false])
  })

  test("images are written in each backend's own format", async () => {
    const sees = { capabilities: { image_input: true } }
    await start({ alpha: sees, beta: sees, gamma: sees }, ['openai-responses', 'anthropic-messages', 'openai-chat'])
    const response = await service!.chat({ model, messages })
    expect(response.status, await response.text()).toBe(200)
    const data = pixel.slice(pixel.indexOf(',') + 1)
    const sent = [0, 1, 2].map((index) => JSON.stringify(sentTo(index)[0]))
    for (const body of sent) expect(body).toContain(data)
    expect(sent[0]).toContain('input_image')
    expect(sent[1]).toContain('"media_type":"image/png"')
  })
})

test('sampling parameters apply to the final answer; the panel also gets the temperature, and the judge its own', async () => {
  await start()
  const [alpha, beta, gamma] = service!.providers
  for (const provider of [alpha, beta, gamma])
    provider!.script([
      answer(`${provider!.name} says so.`),
      answer(judgeReply({ scores: { A: 6, B: 6, C: 6 } })),
      answer('Written.'),
    ])
  const response = await service!.chat({
    model,
    temperature: 0.3,
    top_p: 0.9,
    max_completion_tokens: 900,
    stop: ['END'],
    seed: 7,
    user: 'somebody',
  })
  expect(saidIn(await response.text())).toBe('Written.')
  const all = [0, 1, 2].flatMap(sentTo)
  const contains = (body: JsonObject, words: string): boolean => JSON.stringify(body).includes(words)
  const [judge, ...noOtherJudge] = all.filter((body) => contains(body, 'You compare 3 candidate answers'))
  const [written, ...noOtherWriter] = all.filter((body) => contains(body, "The user's message ends above."))
  expect([...noOtherJudge, ...noOtherWriter]).toEqual([])
  const panel = all.filter((body) => body !== judge && body !== written)
  expect(panel).toHaveLength(3)
  expect(written).toMatchObject({ temperature: 0.3, top_p: 0.9, stop: ['END'], seed: 7 })
  expect(written!['max_completion_tokens'] ?? written!['max_tokens']).toBe(900)
  expect(judge).toMatchObject({ temperature: 0 })
  for (const body of panel) expect(body).toMatchObject({ temperature: 0.3 })
  for (const body of [judge!, ...panel])
    for (const name of ['stop', 'top_p', 'seed', 'tools']) expect(body, name).not.toHaveProperty(name)
})

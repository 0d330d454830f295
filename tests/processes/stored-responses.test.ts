import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { ServiceProcess } from '../faults/service-process.ts'

/** One backend answers in another format, the other one in the client's own. */
const names = ['alpha', 'responses-alpha'] as const
type Name = (typeof names)[number]

let folder: string
let providers: readonly SimulatedProvider[]
let service: ServiceProcess

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-stored-'))
  providers = await Promise.all(names.map((name) => startSimulatedProvider({ name, capture: true })))
  const entries = names.map((name) => [name, { provider: name, model: 'simulated' }] as const)
  const profiles = names.map((name) => [`only/${name}`, { backends: [name] }] as const)
  service = new ServiceProcess(folder, providers, {
    backends: Object.fromEntries(entries),
    profiles: Object.fromEntries(profiles),
  })
  await service.start()
}, 60_000)
afterAll(async () => {
  await service.destroy()
  await Promise.all(providers.map((provider) => provider.close()))
  rmSync(folder, { recursive: true, force: true })
})

async function post(name: Name, body: object): Promise<Response> {
  return fetch(`http://127.0.0.1:${service.port}/v1/responses`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${service.key}`,
      'content-type': 'application/json',
      'user-agent': 'svc-router-tests/1.0',
    },
    body: JSON.stringify({ model: `only/${name}`, ...body }),
  })
}

/** Reads a stream up to its terminal event, and no further; returns the ID in it. */
async function completedId(response: Response): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    const event = /^data: (\{"type":"response\.completed".*\})$/m.exec(text)
    if (event !== null) return (JSON.parse(event[1]!) as { response: { id: string } }).response.id
  }
  throw new Error('the stream was not completed')
}

test.each(names)(
  'if the service is killed right after an answer of %s was reported complete, it continues from that answer',
  { timeout: 60_000 },
  async (name) => {
    const words = ['word-0', 'word-1']
    const ids: string[] = []
    for (const word of words) {
      const previous = ids.at(-1)
      const more = previous === undefined ? {} : { previous_response_id: previous }
      ids.push(await completedId(await post(name, { input: word, stream: true, ...more })))
      await service.stop('SIGKILL')
      await service.start()
    }
    expect((await post(name, { input: 'On.', previous_response_id: ids.at(-1) })).status).toBe(200)
    const reached = providers[names.indexOf(name)]!.captured().at(-1)!.body
    for (const word of words) expect(reached).toContain(word)
  },
)

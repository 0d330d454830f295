import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { ServiceProcess } from './service-process.ts'

let folder: string
let provider: SimulatedProvider
let service: ServiceProcess

afterEach(async () => {
  await service.destroy()
  await provider.close()
  rmSync(folder, { recursive: true, force: true })
})

async function post(body: object): Promise<Response> {
  return fetch(`http://127.0.0.1:${service.port}/v1/responses`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${service.key}`,
      'content-type': 'application/json',
      'user-agent': 'svc-router-tests/1.0',
    },
    body: JSON.stringify({ model: 'svc-router/frontier', ...body }),
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

test.each(['alpha', 'responses-alpha'])(
  'if the service is killed right after an answer of %s was reported complete, it continues from that answer',
  { timeout: 60_000 },
  async (name) => {
    folder = mkdtempSync(join(tmpdir(), 'svc-router-stored-'))
    provider = await startSimulatedProvider({ name, capture: true })
    const settings = { backends: { [name]: { provider: name, model: 'simulated' } } }
    service = new ServiceProcess(folder, [provider], settings)
    await service.start()
    const ids: string[] = []
    for (let round = 0; round < 3; round++) {
      const word = `word-${round}`
      const previous = ids.at(-1)
      const more = previous === undefined ? {} : { previous_response_id: previous }
      ids.push(await completedId(await post({ input: word, stream: true, ...more })))
      await service.stop('SIGKILL')
      await service.start()
    }
    expect((await post({ input: 'On.', previous_response_id: ids.at(-1) })).status).toBe(200)
    const reached = provider.captured().at(-1)!.body
    for (const word of ['word-0', 'word-1', 'word-2']) expect(reached).toContain(word)
  },
)

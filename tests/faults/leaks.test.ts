import { Agent, request } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { Service } from '../service.ts'

const requests = 1_000
/** Heap growth that is not a leak: caches and compiled code. */
const noiseBytes = 2 * 1024 * 1024

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapBytes(): number {
  for (let round = 0; round < 3; round++) collect()
  return process.memoryUsage().heapUsed
}

function counts(): Record<string, number> {
  const count: Record<string, number> = {}
  for (const name of process.getActiveResourcesInfo()) count[name] = (count[name] ?? 0) + 1
  return count
}

/** Sends a request over a keep-alive connection; returns the status. */
function ask(service: Service, agent: Agent, number: number): Promise<number> {
  const stream = number % 2 === 0
  const [path, content] =
    number % 4 < 2
      ? ['/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }]
      : ['/responses', { input: 'Hi' }]
  const body = JSON.stringify({ model: 'svc-router/frontier', stream, ...content })
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${service.key}`,
      'content-type': 'application/json',
      'user-agent': 'svc-router-tests/1.0',
    }
    const sent = request(`${service.baseUrl}${path}`, { method: 'POST', agent, headers }, (response) => {
      response.on('error', reject)
      response.on('end', () => resolve(response.statusCode ?? 0))
      // Every tenth client disconnects in the middle.
      if (number % 10 === 9) {
        response.once('data', () => {
          sent.destroy()
          resolve(0)
        })
      } else response.resume()
    })
    sent.on('error', (error) => (number % 10 === 9 ? resolve(0) : reject(error)))
    sent.end(body)
  })
}

const mixed: readonly ScriptStep[] = [
  { do: 'status', status: 503 },
  { do: 'answer' },
  { do: 'reset' },
  { do: 'answer' },
  { do: 'cut', afterEvents: 8 },
  { do: 'answer' },
  { do: 'error_event', afterEvents: 8 },
  { do: 'answer' },
]

test(
  'a thousand requests leave the heap as it was, and a stopped service leaves nothing open',
  { timeout: 60_000 },
  async () => {
    const before = counts()
    const service = await Service.start({
      hasOwnThread: true,
      formats: ['openai-chat', 'openai-responses'],
      settings: {
        plans: { max: { name: 'Max', requests_per_minute: 100_000, requests_per_month: 1_000_000, premium: true } },
      },
    })
    const agent = new Agent({ keepAlive: true, maxSockets: 8 })
    const run = async (count: number): Promise<void> => {
      let next = 0
      const client = async (): Promise<void> => {
        while (next < count) {
          const number = next++
          if (number % 100 === 0) service.providers[0]!.script(mixed)
          const status = await ask(service, agent, number)
          expect([0, 200]).toContain(status)
        }
      }
      await Promise.all(Array.from({ length: 8 }, client))
      service.events.length = 0
    }
    await run(requests)
    const warm = heapBytes()
    await run(requests)
    const grown = heapBytes() - warm
    console.log(
      `heap after ${requests} requests: ${(warm / 1e6).toFixed(1)} MB, ${(grown / 1e3).toFixed(0)} kB more after ${requests} further ones`,
    )
    expect(grown).toBeLessThan(noiseBytes)
    agent.destroy()
    await service.stop()
    await expect.poll(counts, { timeout: 5_000 }).toEqual(before)
  },
)

import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Target } from '../hostile-neighbors/attacker.ts'
import { hostileModels } from '../hostile-neighbors/hostile-provider.ts'
import { casesOf } from '../long-run.ts'
import { addAccounts } from './add-accounts.ts'
import { openEventStream, type ScriptedUpstream, sendJson, startScriptedUpstream } from './scripted-upstream.ts'
import { ServiceProcess } from './service-process.ts'

const streamEvents = 20
const betweenEventsMs = 50
const atOnce = 12
const measuredStreams = casesOf({ sample: 36, all: 60 })
/** Streams without an attack; fewer of them make the slowest a stricter limit. */
const baselineStreams = 24
/** Time limit until all attacks are running. */
const attackLeadMs = 4_000
/**
 * Small requests before the first measurement, and how many at once. A service in use has grown its young generation to
 * its limit, compiled its code, and loaded its web app, so none of these counts as growth.
 */
const earlierRequests = 4_000
const earlierAtOnce = 64
/** Growth of resident memory. docs/decisions/41 says what it consists of. */
const mostGrowthBytes = 100 * 1024 * 1024
const longestStreamMs = 10_000
const smallAnswer = JSON.stringify({
  id: 'small',
  object: 'chat.completion',
  created: 0,
  model: 'good',
  choices: [{ index: 0, message: { role: 'assistant', content: 'One. '.repeat(200) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 200, total_tokens: 201 },
})
/** The attacks that must have started; some of them never read an answer. */
const attackNames = [
  'half-sent',
  'half-sent large',
  'full rate',
  'patterns',
  'deep',
  'long header',
  'bomb',
  ...hostileModels,
]

let folder: string
let service: ServiceProcess
let attacker: ChildProcess
let upstream: ScriptedUpstream
let target: Target
let neighborKey: string

// For each attempt, because a missed limit is measured once more.
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-hostile-'))
  upstream = await startScriptedUpstream()
  upstream.answer = async (_request, response) => {
    if (upstream.bodies.at(-1)?.includes('"stream":true') !== true) return sendJson(response, smallAnswer)
    openEventStream(response)
    for (let index = 0; index < streamEvents; index++) {
      const isLast = index === streamEvents - 1
      const choice = { index: 0, delta: isLast ? {} : { content: `${index} ` }, finish_reason: isLast ? 'stop' : null }
      response.write(`data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [choice] })}\n\n`)
      await delay(betweenEventsMs)
    }
    response.end('data: [DONE]\n\n')
  }
  attacker = fork(join(import.meta.dirname, '..', 'hostile-neighbors', 'attacker.ts'), { stdio: 'inherit' })
  const [{ baseUrl: hostileUrl }] = (await once(attacker, 'message')) as [{ baseUrl: string }]
  const backends = Object.fromEntries(hostileModels.map((model) => [model, { provider: 'hostile', model }]))
  const profiles = Object.fromEntries(hostileModels.map((model) => [`hostile/${model}`, { backends: [model] }]))
  const custom = (baseUrl: string): object => ({ preset: 'custom', base_url: baseUrl, format: 'openai-chat' })
  service = new ServiceProcess(folder, [], {
    app_listen: { port: 0 },
    providers: { good: custom(upstream.baseUrl), hostile: custom(hostileUrl) },
    backends: { good: { provider: 'good', model: 'good' }, ...backends },
    plans: { unlimited: { name: 'Unlimited', requests_per_minute: 1_000_000, requests_per_month: 10_000_000 } },
    profiles: { 'svc-router/frontier': { backends: ['good'] }, ...profiles },
  })
  await service.start()
  const plans = { attacker: 'unlimited', provider: 'unlimited', neighbor: 'unlimited' }
  const keys = await addAccounts(join(folder, 'svc-router.yaml'), plans, service.dataDir)
  target = { apiPort: service.port, appPort: service.appPort, key: keys.attacker, unlimitedKey: keys.provider }
  neighborKey = keys.neighbor
}, 120_000)

afterEach(async () => {
  if (attacker.connected) attacker.send('stop')
  await service.destroy()
  await upstream.close()
  rmSync(folder, { recursive: true, force: true })
})

test('a hostile account and a hostile provider do not affect another account', async () => {
  await showPage()
  await answerSmallRequests()
  await measure(casesOf({ sample: 1, all: 2 }) * atOnce)
  const before = await measure(baselineStreams)
  const beforeBytes = residentBytes()
  let mostBytes = 0
  const sampling = setInterval(() => (mostBytes = Math.max(mostBytes, residentBytes())), 100)
  try {
    attacker.send(target)
    await delay(attackLeadMs)
    const during = await measure(measuredStreams)
    attacker.send('counts')
    const [counts] = (await once(attacker, 'message')) as [Record<string, number>]
    const p99 = { before: quantile(before.ms, 0.99), during: quantile(during.ms, 0.99) }
    const [beforeMb, growthMb] = [beforeBytes, mostBytes - beforeBytes].map((bytes) => Math.round(bytes / 1024 / 1024))
    console.info(
      `answered ${during.whole} of ${measuredStreams}; p99 ${p99.before.toFixed(0)} ms before, ${p99.during.toFixed(0)} ms during; memory ${beforeMb} MB +${growthMb} MB`,
      counts,
    )
    expect(Object.keys(counts)).toEqual(expect.arrayContaining(attackNames))
    expect(during.failures).toEqual({})
    expect(p99.during).toBeLessThan(2 * p99.before)
    expect(mostBytes - beforeBytes).toBeLessThan(mostGrowthBytes)
  } finally {
    clearInterval(sampling)
  }
}, 120_000)

interface Measured {
  readonly whole: number
  /** The failures, and how often each occurred. */
  readonly failures: Readonly<Record<string, number>>
  /** Milliseconds from sending a request to the end of its stream. */
  readonly ms: readonly number[]
}

/** Sends this many streamed requests of the first account, several at a time. */
async function measure(count: number): Promise<Measured> {
  const failures = new Map<string, number>()
  const ms: number[] = []
  let left = count
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left-- > 0) {
        const startedMs = performance.now()
        const failure = await stream().catch((error: unknown) => String(error))
        ms.push(performance.now() - startedMs)
        if (failure !== undefined) failures.set(failure, (failures.get(failure) ?? 0) + 1)
      }
    }),
  )
  const failed = [...failures.values()].reduce((sum, one) => sum + one, 0)
  return { whole: count - failed, failures: Object.fromEntries(failures), ms }
}

/** The first page loads the web app, which some of the attacks use. */
async function showPage(): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${service.appPort}/`)
  await response.text()
  expect(response.status).toBe(200)
}

/** Sends requests without streaming from a third account. @throws Error unless all succeed */
async function answerSmallRequests(): Promise<void> {
  let left = earlierRequests
  await Promise.all(
    Array.from({ length: earlierAtOnce }, async () => {
      while (left-- > 0) {
        const response = await ask(neighborKey, false)
        const text = await response.text()
        if (response.status !== 200) throw new Error(`${response.status} ${text.slice(0, 120)}`)
      }
    }),
  )
}

async function ask(key: string, stream: boolean): Promise<Response> {
  return await fetch(`http://127.0.0.1:${service.port}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'svc-router/frontier', stream, messages: [{ role: 'user', content: 'Count.' }] }),
    signal: AbortSignal.timeout(longestStreamMs),
  })
}

/** The problem of a streamed answer, if any. */
async function stream(): Promise<string | undefined> {
  const response = await ask(service.key, true)
  const text = await response.text()
  const events = text.split('\n\n').filter((event) => event.startsWith('data: {'))
  const isWhole = response.status === 200 && events.length === streamEvents && text.endsWith('data: [DONE]\n\n')
  return isWhole ? undefined : `${response.status} ${text.slice(0, 120)}`
}

function residentBytes(): number {
  const status = readFileSync(`/proc/${service.running.pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!
}

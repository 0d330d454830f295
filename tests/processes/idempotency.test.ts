import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type SimulatedProvider, startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { ServiceProcess } from '../faults/service-process.ts'
import { hasPostgres } from '../postgres.ts'
import { sharedPostgres } from '../shared-postgres.ts'

const limitMs = 120_000
const words = 'one two three four five six seven eight nine ten eleven twelve'
/** A stream that takes about three seconds. */
const slow = { do: 'answer', text: words, tokenDelayMs: 150, repeat: true } as const
const plans = { max: { name: 'Max', requests_per_minute: 100_000, requests_per_month: 1_000_000, premium: true } }
const body = JSON.stringify({
  model: 'svc-router/frontier',
  stream: true,
  messages: [{ role: 'user', content: 'Count.' }],
})

let provider: SimulatedProvider
let folder: string
let db: Kysely<Tables>
let key = ''
let keys = 0
const newKey = (): string => `key-${++keys}`
const calls = (): number => provider.captured().length

beforeEach(() => provider.script([slow]))

function ask({ port }: ServiceProcess, idempotencyKey: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'user-agent': 'svc-router-tests/1.0',
      'idempotency-key': idempotencyKey,
      // A retry must not go to the worker that has the connection of the first request.
      connection: 'close',
    },
    body,
  })
}

function call(
  { port }: ServiceProcess,
  method: string,
  path: string,
  sent?: object,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'user-agent': 'svc-router-tests/1.0',
      ...headers,
    },
    ...(sent !== undefined && { body: JSON.stringify(sent) }),
  })
}

async function responseAt(node: ServiceProcess, method: string, path: string): Promise<Record<string, unknown>> {
  return (await (await call(node, method, `/responses/${path}`)).json()) as Record<string, unknown>
}

/** Starts a streamed background response, and disconnects once it has its ID. */
async function inBackground(node: ServiceProcess): Promise<{ id: string }> {
  const sent = { model: 'svc-router/frontier', input: 'Count.', background: true, stream: true }
  const part = await readPart(await call(node, 'POST', '/responses', sent), 200)
  const [, id = ''] = /"id":"(resp_\w+)"/.exec(part.toString()) ?? []
  return { id }
}

const maxTries = 20

/** Reads until an answer has this many bytes, or ends or breaks. */
async function readPart(response: Response, bytes = Infinity): Promise<Buffer> {
  const received: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of response.body!) {
      received.push(chunk)
      length += chunk.length
      if (length >= bytes) break
    }
  } catch {
    // The process was killed.
  }
  return Buffer.concat(received)
}

/** Sends the request again after a 503, as it says: on a busy machine, the database may not answer in time. */
async function whole(node: ServiceProcess, idempotencyKey: string): Promise<string> {
  for (let tries = 1; ; tries++) {
    const response = await ask(node, idempotencyKey)
    if (response.status !== 503 || tries === maxTries) return (await readPart(response)).toString()
    await response.body?.cancel()
    await sleep(1_000 * Number(response.headers.get('retry-after') ?? 1))
  }
}

async function charged(): Promise<number> {
  const { used } = await db
    .selectFrom('usage')
    .select(sql<number>`cast(coalesce(sum(used), 0) as bigint)`.as('used'))
    .executeTakeFirstOrThrow()
  return used
}

/** What earlier tests were charged. The last of it is written a moment after its answer. */
async function chargedBefore(): Promise<number> {
  await sleep(1_000)
  return charged()
}

const settings = (more: object): object => ({
  ...more,
  plans,
  backends: { alpha: { provider: 'alpha', model: 'simulated' } },
})
const secrets = {
  SVC_ROUTER_PEPPER: 'pepper of this test',
  SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
}

describe.runIf(hasPostgres('idempotency on three nodes'))('three nodes on PostgreSQL', { timeout: limitMs }, () => {
  const nodes: ServiceProcess[] = []

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-router-idempotency-'))
    provider = await startSimulatedProvider({ name: 'alpha', capture: true })
    const url = await (await sharedPostgres({ durable: true })).createDatabase()
    db = connectPostgres(url, { maxConnections: 2 })
    const env = { ...secrets, DATABASE_URL: url }
    const own = settings({ database: { url_env: 'DATABASE_URL' } })
    for (let n = 0; n < 3; n += 1) nodes.push(new ServiceProcess(join(folder, `node-${n}`), [provider], own, env))
    await Promise.all(nodes.map((node) => node.start()))
    key = nodes.map((node) => node.key).find((made) => made !== '')!
  }, limitMs)

  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.destroy()))
    await db.destroy()
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test('a retry at another node receives the running stream, identically', async () => {
    const [id, before] = [newKey(), calls()]
    const part = await readPart(await ask(nodes[0]!, id), 400)
    const again = await whole(nodes[1]!, id)
    expect(again.startsWith(part.toString())).toBe(true)
    expect(again).toContain('twelve')
    expect(await whole(nodes[2]!, id)).toBe(again)
    expect(calls() - before).toBe(1)
  })

  test('1,000 clients at once at all nodes get one answer from one upstream call, for one unit', async () => {
    provider.script([{ do: 'answer', text: words, repeat: true }])
    const [id, before, unitsBefore] = [newKey(), calls(), await chargedBefore()]
    const answers = await Promise.all(Array.from({ length: 1_000 }, (_, n) => whole(nodes[n % 3]!, id)))
    expect(new Set(answers).size).toBe(1)
    expect(answers[0]).toContain('twelve')
    expect(calls() - before).toBe(1)
    await expect.poll(charged).toBe(unitsBefore + 1)
  })

  test('after kill -9 in the middle of a stream, retries at other nodes get that part and an error, for one unit', async () => {
    const [id, before, unitsBefore] = [newKey(), calls(), await chargedBefore()]
    const first = await ask(nodes[0]!, id)
    const reading = readPart(first)
    await sleep(1_000)
    await nodes[0]!.stop('SIGKILL')
    const part = (await reading).toString()
    expect(part).toContain('three')
    const again = await whole(nodes[1]!, id)
    expect(again.startsWith(part)).toBe(true)
    expect(again).toContain('"code":"answer_interrupted"')
    expect(again).not.toContain('twelve')
    const retries = await Promise.all(Array.from({ length: 1_000 }, (_, n) => whole(nodes[1 + (n % 2)]!, id)))
    expect(new Set(retries)).toEqual(new Set([again]))
    expect(calls() - before).toBe(1)
    await nodes[0]!.start()
    await expect.poll(charged).toBe(unitsBefore + 1)
    expect(await whole(nodes[0]!, id)).toBe(again)
  })

  test('a client that disconnects from another node and returns there at once receives the whole stream', async () => {
    const before = calls()
    const returns = Array.from({ length: 12 }, async (_, n) => {
      const id = newKey()
      const original = whole(nodes[0]!, id)
      await sleep(500)
      await readPart(await ask(nodes[1]!, id), 200)
      // The node notices the disconnection, and may still be waiting for its next look into the database.
      await sleep(5 * n)
      expect(await whole(nodes[1]!, id)).toBe(await original)
    })
    await Promise.all(returns)
    expect(calls() - before).toBe(12)
  })

  test('a background request that is sent many times at once, at all nodes, is one response', async () => {
    const before = calls()
    const sent = { model: 'svc-router/frontier', input: 'Count.', background: true }
    const responses = await Promise.all(
      Array.from({ length: 60 }, async (_, n) => {
        const response = await call(nodes[n % 3]!, 'POST', '/responses', sent, { 'idempotency-key': 'background' })
        return (await response.json()) as { id: string; status: string }
      }),
    )
    expect(new Set(responses.map(({ id }) => id)).size).toBe(1)
    for (const { status } of responses) expect(['queued', 'in_progress', 'completed']).toContain(status)
    expect(calls() - before).toBe(1)
  })

  test('a background response is shown, streamed, and canceled at another node', async () => {
    const { id } = await inBackground(nodes[0]!)
    expect(await responseAt(nodes[1]!, 'GET', id)).toMatchObject({ status: 'in_progress' })
    const events = call(nodes[2]!, 'GET', `/responses/${id}?stream=true`).then((response) => response.text())
    await expect
      .poll(
        async () =>
          (
            await db
              .selectFrom('generations')
              .select('has_content')
              .where('request_id', '=', id.replace('resp_', 'req_'))
              .executeTakeFirst()
          )?.has_content,
      )
      .toBe(1)
    expect(await responseAt(nodes[1]!, 'POST', `${id}/cancel`)).toMatchObject({ status: 'cancelled' })
    expect(await events).toContain('event: response.cancelled')
    expect(await responseAt(nodes[2]!, 'GET', id)).toMatchObject({ status: 'cancelled' })
  })

  test('deleting a background response at another node cancels it, for one unit, and it never appears again', async () => {
    const [stopped, before, unitsBefore] = [provider.counts().aborted, calls(), await chargedBefore()]
    const { id } = await inBackground(nodes[0]!)
    expect(await responseAt(nodes[1]!, 'DELETE', id)).toMatchObject({ id, deleted: true })
    await expect.poll(() => provider.counts().aborted).toBeGreaterThan(stopped)
    // As long as the whole answer would take.
    await sleep(3_000)
    for (const node of nodes) expect((await call(node, 'GET', `/responses/${id}`)).status).toBe(404)
    expect(calls() - before).toBe(1)
    await expect.poll(charged).toBe(unitsBefore + 1)
  })

  test('a background response whose node is killed can be deleted', async () => {
    const { id } = await inBackground(nodes[0]!)
    await nodes[0]!.stop('SIGKILL')
    await expect
      .poll(async () => (await call(nodes[1]!, 'DELETE', `/responses/${id}`)).status, { timeout: 30_000 })
      .toBe(200)
    await nodes[0]!.start()
    for (const node of nodes) expect((await call(node, 'GET', `/responses/${id}`)).status).toBe(404)
  })

  test('a background response whose node is killed has failed', async () => {
    const { id } = await inBackground(nodes[0]!)
    await nodes[0]!.stop('SIGKILL')
    await expect
      .poll(async () => (await responseAt(nodes[1]!, 'GET', id))['status'], { timeout: 15_000 })
      .toBe('failed')
    expect(await responseAt(nodes[2]!, 'GET', id)).toMatchObject({ error: { code: 'answer_interrupted' } })
    await nodes[0]!.start()
  })

  test('after kill -9 before content, a retry at another node runs again, for one unit in total', async () => {
    provider.script([{ do: 'silence' }, { do: 'answer', text: words, repeat: true }])
    const [id, before, unitsBefore] = [newKey(), calls(), await chargedBefore()]
    const lost = ask(nodes[0]!, id).catch(() => undefined)
    await expect.poll(calls).toBe(before + 1)
    await nodes[0]!.stop('SIGKILL')
    await lost
    const again = await whole(nodes[1]!, id)
    expect(again).toContain('twelve')
    expect(await whole(nodes[2]!, id)).toBe(again)
    expect(calls() - before).toBe(2)
    await nodes[0]!.start()
    await expect.poll(charged).toBe(unitsBefore + 1)
  })
})

describe.runIf(existsSync('/proc/self/task'))('two workers on SQLite', { timeout: limitMs }, () => {
  let service: ServiceProcess

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-router-idempotency-'))
    provider = await startSimulatedProvider({ name: 'alpha', capture: true })
    service = new ServiceProcess(folder, [provider], settings({ workers: 2 }), secrets)
    await service.start()
    key = service.key
    db = await openSqlite(service.dataDir)
  }, limitMs)

  afterAll(async () => {
    await service.destroy()
    await db.destroy()
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test('retries reach both workers, and receive the running stream, identically', async () => {
    const [id, before] = [newKey(), calls()]
    const part = (await readPart(await ask(service, id), 400)).toString()
    const retries = await Promise.all(Array.from({ length: 12 }, () => whole(service, id)))
    expect(new Set(retries).size).toBe(1)
    expect(retries[0]!.startsWith(part)).toBe(true)
    expect(retries[0]).toContain('twelve')
    expect(calls() - before).toBe(1)
  })

  test('after kill -9 of the workers in the middle of a stream, retries get that part and an error, for one unit', async () => {
    const [id, before, unitsBefore] = [newKey(), calls(), await chargedBefore()]
    const reading = readPart(await ask(service, id))
    await sleep(1_000)
    const old = service.workers()
    for (const worker of old) process.kill(worker, 'SIGKILL')
    const part = (await reading).toString()
    await expect.poll(() => service.workers().filter((id) => !old.includes(id)).length, { timeout: 30_000 }).toBe(2)
    await expect
      .poll(
        () =>
          ask(service, 'up').then(
            (response) => response.status,
            () => 0,
          ),
        { timeout: 30_000 },
      )
      .toBe(200)
    const again = await whole(service, id)
    expect(again.startsWith(part)).toBe(true)
    expect(again).toContain('"code":"answer_interrupted"')
    expect(await whole(service, id)).toBe(again)
    // The request that waited for the workers is another one.
    expect(calls() - before).toBe(2)
    await whole(service, 'up')
    await expect.poll(charged).toBe(unitsBefore + 2)
  })

  test('after kill -9 of the whole service before content, a retry runs again, for one unit in total', async () => {
    provider.script([{ do: 'silence' }, { do: 'answer', text: words, repeat: true }])
    const [id, before, unitsBefore] = [newKey(), calls(), await chargedBefore()]
    const lost = ask(service, id).catch(() => undefined)
    await expect.poll(calls).toBe(before + 1)
    await service.stop('SIGKILL')
    await lost
    await service.start()
    const again = await whole(service, id)
    expect(again).toContain('twelve')
    expect(await whole(service, id)).toBe(again)
    expect(calls() - before).toBe(2)
    await expect.poll(charged).toBe(unitsBefore + 1)
  })
})

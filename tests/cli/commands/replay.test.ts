import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { ReplayReport } from '../../../src/domain/replay.ts'
import type { RequestRecord } from '../../../src/domain/requests.ts'
import { idMinter } from '../../../src/runtime/ids.ts'
import { outcomeColumns } from '../../../src/storage/requests.ts'
import { databasePath } from '../../../src/storage/sqlite/connect-sqlite.ts'
import { recordsUnder } from '../../simulation/replay-experiments.ts'
import { Harness } from '../harness.ts'

/** The last one is in no profile, so no record has it. */
const backends = ['b0', 'b1', 'b2', 'b3', 'b4', 'unused']
let harness: Harness
let policyFile: string

beforeAll(async () => {
  harness = new Harness()
  harness.isStoreReal = true
  harness.env['SVC_ROUTER_SEALING_KEY'] = 'ab'.repeat(32)
  harness.env['SVC_ROUTER_PEPPER'] = 'made-up-pepper-of-the-tests'
  policyFile = join(harness.folder, 'policy.yaml')
  writeFileSync(
    configFile(),
    [
      'providers: { p: { preset: custom, base_url: "http://127.0.0.1:9/v1", format: openai-chat } }',
      'backends:',
      ...backends.map((id, index) => {
        const price = `{ input: ${1 + index}, output: ${4 + 4 * index} }`
        return `  ${id}: { provider: p, model: m-${id}, usd_per_million: ${price}, failure_domain: d${id} }`
      }),
      'profiles:',
      '  svc-router/frontier: { backends: [b0, b1, b2, b3, b4], routing: { sort: balanced } }',
    ].join('\n'),
  )
  expect(await harness.say('accounts', 'create', 'mine', '--config', configFile())).toMatchObject({ code: 0 })
  const balanced = { sort: 'balanced' } as const
  const experiment = { seed: 1, seconds: 660, perSecond: 4, recordedUnder: balanced, replayedUnder: balanced }
  store(await recordsUnder(experiment, balanced))
}, 120_000)
afterAll(() => harness.remove())
beforeEach(() => writePolicy('{ svc-router/frontier: { routing: { sort: latency } } }'))

const configFile = (): string => join(harness.folder, 'svc-router.yaml')
const writePolicy = (profiles: string): void => writeFileSync(policyFile, `profiles: ${profiles}`)
const replay = (...args: readonly string[]) =>
  harness.say('replay', '--config', configFile(), '--policy', policyFile, ...args)

/** Writes records that ended just now, and one of another profile. */
function store(records: readonly RequestRecord[]): void {
  const database = new DatabaseSync(databasePath(harness.dataDir))
  let nowMs = 0
  const mintId = idMinter(
    'req_',
    () => nowMs,
    (length) => new Uint8Array(length),
  )
  const laterMs = Date.now() - records.at(-1)!.admittedAtMs - 1_000
  const rows = [...records, { ...records[0]!, profile: 'other' }].map((record) => {
    const admittedAtMs = Math.round(record.admittedAtMs + laterMs)
    const { accountId, profile, format, totalMs } = record
    const given = { account_id: accountId, profile: profile === 'p' ? 'svc-router/frontier' : profile, format }
    nowMs = admittedAtMs
    const id = mintId()
    const times = { admitted_at_ms: admittedAtMs, total_ms: Math.round(totalMs) }
    const fixed = { id, key_id: 'k', stream: 1, units: 1, period_id: '2026-11', state: 'done' }
    return { ...outcomeColumns(record), ...fixed, ...given, ...times }
  })
  const columns = Object.keys(rows[0]!)
  const insert = database.prepare(
    `insert into requests (${columns.join(', ')}) values (${columns.map((name) => `:${name}`).join(', ')})`,
  )
  database.exec('begin')
  for (const row of rows) insert.run(row as Record<string, string | number | null>)
  database.exec('commit')
  database.close()
}

test('a replay compares another policy with the configured one, as a table and as JSON', async () => {
  const { code, out, err } = await replay()
  expect(err).toContain('requests of svc-router/frontier replayed')
  expect(out).toMatch(/^ +RECORDED +CONFIGURED +POLICY +CHANGE, 95% INTERVAL\n/)
  expect(out).toMatch(/USD per 1,000 requests +[\d.]+ +[\d.]+ +[\d.]+ +\+[\d.]+ \([+-]?[\d.]+ to \+[\d.]+\)/)
  expect(out).toMatch(/first content, median +\d+ ms +\d+ ms +\d+ ms +[+-]?\d+ ms \(/)
  expect(out).toMatch(/answered by b4 +[\d.]+% +[\d.]+% +[\d.]+%/)
  expect(code).toBe(0)
  const report = JSON.parse((await replay('--json')).out) as ReplayReport
  expect(report).toMatchObject({ canTell: true, unpriced: [], profile: 'svc-router/frontier' })
  expect(report.requests).toBeGreaterThan(2_000)
  expect(report.records).toBe(report.requests)
})

test('a backend that no request was sent to makes the result unknown', async () => {
  writePolicy('{ svc-router/frontier: { backends: [b0, unused], routing: { sort: latency } } }')
  const { code, out, err } = await replay()
  expect(out).toBe('')
  expect(err).toContain('The records do not show what would have changed')
  expect(err).toContain('unused has no record for this kind of request')
  expect(code).toBe(0)
})

test('few records, or a short time, tell nothing', async () => {
  const { out, err } = await replay('--limit', '150')
  expect(out).toBe('')
  expect(err).toContain('at least 200 requests over 10 minutes are needed')
  expect((await replay('--since', '5m')).err).toContain('at least 200 requests over 10 minutes are needed')
})

test.each([
  ['profiles: { svc-router/frontier: { routing: { sort: fastest } } }', [], 'order, balanced, latency, price'],
  ['profiles: { svc-router/frontire: { routing: {} } }', [], 'did you mean "svc-router/frontier"?'],
  ['profiles: { svc-router/frontier: { routing: { order: [b9] } } }', [], 'there is no backend or model "b9"'],
  ['profiles: {}', [], 'the policy file has no profile'],
  ['backends: {}', [], 'error'],
  ['profiles: { svc-router/frontier: {}, svc-router/fusion: {} }', [], 'the policy file has several profiles'],
  ['profiles: { svc-router/frontier: {} }', ['--profile', 'x'], 'does not have this profile'],
  ['profiles: { svc-router/frontier: {} }', ['--since', 'soon'], '--since must be'],
])('an invalid policy or option is explained: %s %j', async (text, args, sentence) => {
  writeFileSync(policyFile, text)
  const { code, err } = await replay(...args)
  expect(code).not.toBe(0)
  expect(err).toContain(sentence)
})

test('a missing policy is explained', async () => {
  const missing = (await harness.say('replay', '--config', configFile())).err
  expect(missing).toContain('--policy is missing')
  expect(missing).toContain('--policy FILE')
  const { err } = await harness.say('replay', '--config', configFile(), '--policy', '/does/not/exist')
  expect(err).toContain('the file cannot be read')
})

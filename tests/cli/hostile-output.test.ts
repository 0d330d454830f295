import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { commands } from '../../src/cli/commands.ts'
import type { Upstream } from '../../src/domain/accounts.ts'
import type { Incident } from '../../src/domain/incidents.ts'
import { readReport } from '../../src/domain/node-report.ts'
import type { Operator } from '../../src/domain/operators.ts'
import type { RequestRecord } from '../../src/domain/requests.ts'
import type { Ticket } from '../../src/domain/tickets.ts'
import type { Store } from '../../src/storage/store.ts'
import { Harness } from './harness.ts'

/** Clears the screen, sets the title, reorders text, and breaks the line, as C0, C1, bidi and separators. */
const evil = 'a\u001b[2J\u001b]0;owned\u0007\u009b31m\u202egnp.\u2066\u2028\u0085\r\u0000b\u007f'
const evilLines = `${evil}\nforged line`
const unsafe = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

/** Every command that prints what others wrote. */
const printing: Readonly<Record<string, readonly string[]>> = {
  'keys list': [],
  'budgets list': [],
  'webhooks list': [],
  'webhooks remove': ['whk_evil'],
  'keys limit': ['key_evil', '--per-minute', '5'],
  'accounts list': [],
  'accounts suspend': ['acc_1'],
  'accounts plan': ['acc_1', 'pro'],
  'upstream list': [],
  'upstream add': ['ollama', '--model', 'm'],
  'upstream test': [],
  'upgrades list': [],
  'tickets list': [],
  'incidents list': [],
  'operators list': [],
  'operators role': ['evil@example.com', '--role', 'viewer'],
  'audit list': [],
  diff: ['-f', '-'],
  apply: ['-f', '-'],
  export: [],
  'admin-tokens list': [],
  'backends list': [],
  'managed-access requests': [],
  restore: ['evil.backup', '--trust', '--check'],
  requests: [],
  request: ['req_evil'],
  status: [],
  doctor: [],
  explain: [],
}

/** Commands that print only our own words, the configuration, or what was typed. */
const ownWords = [
  'start',
  'check',
  'demo',
  'connect',
  'run',
  'keys create',
  'keys rotate',
  'keys revoke',
  'budgets set',
  'budgets remove',
  'webhooks add',
  'webhooks test',
  'webhooks rotate',
  'sign-in-link',
  'accounts create',
  'accounts resume',
  'upgrades approve',
  'upgrades reject',
  'upstream remove',
  'eval',
  'operators create',
  'operators sign-in-link',
  'operators remove',
  'admin-tokens create',
  'admin-tokens revoke',
  'audit verify',
  'audit export',
  'audit checkpoint',
  'backends drain',
  'backends undrain',
  'backends quarantine',
  'backends release',
  'profiles dry-run',
  'replay',
  'backup',
  'database to-postgres',
  'database to-sqlite',
  'secrets status',
  'secrets reseal',
  'managed-access status',
  'managed-access on',
  'managed-access off',
  'managed-access resale',
  'managed-access approve',
  'managed-access reject',
  'incidents open',
  'incidents update',
  'tickets close',
  'tickets reopen',
  'version',
]

const harnesses: Harness[] = []
const servers: Server[] = []
afterEach(async () => {
  for (const harness of harnesses.splice(0)) harness.remove()
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve))
})

function hostile(): Harness {
  const harness = new Harness()
  harnesses.push(harness)
  const { store } = harness
  const atMs = 1_700_000_000_000
  store.accounts.push({ id: 'acc_1', name: evil, planId: 'free', suspended: false, createdAtMs: atMs })
  store.keys.push({
    id: 'key_evil',
    accountId: 'acc_1',
    name: evil,
    hint: evil,
    state: 'active',
    endsAtMs: null,
    createdAtMs: atMs,
    revokedAtMs: null,
    limits: { profiles: null, perMinute: null, addresses: null },
  })
  const upstream: Upstream = {
    id: evil,
    accountId: 'acc_1',
    provider: evil,
    model: evil,
    baseUrl: evil,
    format: null,
    authHeader: null,
    sealedCredential: 'x',
    credentialHint: evil,
    position: 1,
    createdAtMs: atMs,
  }
  store.upstreams.push(upstream)
  const incident: Incident = {
    id: evil,
    title: evil,
    impact: 'minor',
    createdAtMs: atMs,
    updates: [{ id: 'upd_1', state: 'investigating', text: evil, atMs }],
  } as unknown as Incident
  harness.incidents.incidents = [incident]
  const ticket: Ticket = {
    id: evil,
    accountId: evil,
    replyTo: evilLines,
    requestId: evilLines,
    text: evilLines,
    createdAtMs: atMs,
    closedAtMs: null,
  }
  const operator: Operator = {
    id: 'opr_1',
    email: evil,
    role: 'admin',
    state: 'active',
    createdAtMs: atMs,
    removedAtMs: null,
  }
  harness.test = { outcome: 'rejected_content', status: 400, ms: 1, reason: evil }
  const record = {
    id: 'req_evil',
    accountId: evil,
    keyId: evil,
    profile: evil,
    format: evil,
    stream: true,
    units: 1,
    periodId: '2026-11',
    admittedAtMs: Date.now(),
    state: 'done',
    charged: 0,
    totalMs: 5,
    errorCode: 'upstream_unavailable',
    attempts: [{ backend: evil, outcome: 'server_error', status: 500, ms: 3, upstreamRequestId: evil }],
  } as unknown as RequestRecord
  harness.records.push(record)
  harness.errors.push({ id: 'per_1', requestId: 'req_evil', backend: evil, accountId: null, atMs, sealed: evilLines })
  harness.real = {
    ...bound(store),
    listTickets: () => Promise.resolve([ticket]),
    findTicket: () => Promise.resolve(ticket),
    listAudit: () =>
      Promise.resolve([
        {
          sequence: 2,
          atMs,
          actor: { kind: 'operator', operatorId: evil },
          event: { type: 'upstream.added', accountId: evil, upstreamId: evil, provider: evil },
        },
      ]),
    listSettings: () => Promise.resolve([]),
    listDeclared: () => Promise.resolve([]),
    markDeclared: () => Promise.resolve(),
    listWorkingKeys: () => Promise.resolve(store.keys),
    revision: () => Promise.resolve(1),
    listAdminTokens: () =>
      Promise.resolve([
        {
          id: evil,
          name: evil,
          hint: evil,
          scope: 'read',
          operatorId: evil,
          createdAtMs: atMs,
          expiresAtMs: atMs,
          lastUsedAtMs: null,
          revokedAtMs: null,
        },
      ]),
    listBudgets: () =>
      Promise.resolve([
        {
          id: evil,
          accountId: evil,
          scope: 'key',
          subject: evil,
          unit: 'usd',
          window: 'month',
          rolling: false,
          limit: 1,
          setBy: 'account',
          createdAtMs: atMs,
        },
      ]),
    readBudgetSpending: () => Promise.resolve([]),
    listOperatorBudgets: () => Promise.resolve([]),
    listWebhooks: () =>
      Promise.resolve([{ id: 'whk_evil', accountId: 'acc_1', url: evil, createdAtMs: atMs, previousUntilMs: null }]),
    listWebhookDeliveries: () =>
      Promise.resolve([{ target: evil, body: JSON.stringify({ type: evil }), state: 'failed', result: evil, atMs }]),
    removeWebhook: () => Promise.resolve(true),
    listBackendControls: () => Promise.resolve([{ backendId: evil, kind: 'drained', atMs, by: evil, reason: evil }]),
    listManagedRequests: () =>
      Promise.resolve([{ id: evil, accountId: evil, state: 'requested', createdAtMs: atMs, decidedAtMs: null }]),
  } as unknown as Store
  harness.operators = {
    listOperators: () => Promise.resolve([operator]),
    findOperatorByEmail: () => Promise.resolve(operator),
    findOperator: () => Promise.resolve(operator),
    setOperatorRole: () => Promise.resolve(true),
  } as unknown as Store['operators']
  harness.restored = {
    manifest: {
      atMs,
      version: evil,
      engine: 'sqlite',
      schema: evil,
      tables: { [evil]: { rows: 1, digest: evil } },
      audit: { sequence: 1, hash: evil },
      checkpoint: null,
      secrets: [evil],
    },
    audit: { state: 'unproven', entries: 1 },
    uncounted: 0,
    reapplied: { entries: 1, applied: 0, lost: { [evil]: 1 }, accountsToCheck: [evil] },
  }
  const report = readReport(
    JSON.stringify({
      form: 1,
      name: evil,
      pid: 1,
      version: evil,
      isDraining: false,
      reasons: [evil],
      backends: [],
      ownDown: [evil],
      requests: { answered: 1, failed: 1 },
      failures: [],
    }),
  )
  harness.nodes = [{ id: evil, startedAtMs: atMs, seenAtMs: Date.now(), report }]
  harness.billing.listUpgradeRequests = () =>
    Promise.resolve([
      { id: evil, accountId: evil, planId: evil, state: 'requested', createdAtMs: atMs, decidedAtMs: null },
    ] as never)
  return harness
}

/** The methods of a store in memory as an object that can be spread. */
function bound(store: object): object {
  const names = Object.getOwnPropertyNames(Object.getPrototypeOf(store)) as (keyof typeof store)[]
  return Object.fromEntries(
    names.map((name) => {
      const value: unknown = store[name]
      return [name, typeof value === 'function' ? (value.bind(store) as unknown) : value]
    }),
  )
}

test('every command is tested with hostile rows or prints only our own text', () => {
  const listed = [...Object.keys(printing), ...ownWords]
  expect(commands.map(({ name }) => name).filter((name) => !listed.includes(name))).toEqual([])
})

test.each(Object.entries(printing))('%s prints nothing that controls a terminal', async (name, args) => {
  const all = [...name.split(' '), ...args]
  const asksServer = name === 'doctor' || name === 'explain'
  if (asksServer) all.push('--url', await hostileServer())
  for (const line of [all, [...all, '--json']]) {
    const harness = hostile()
    if (name === 'explain') harness.env['SVC_ROUTER_API_KEY'] = 'sk_svc_any'
    if (line.includes('-f')) harness.stdin = 'version: 1\nbackends: {}\naccounts: {}\n'
    const { out, err } = await harness.say(...line)
    expect(out + err, line.join(' ')).not.toMatch(unsafe)
    // The rows are there, made harmless, and not replaced by an error about them.
    if (name !== 'doctor') expect(out + err).toMatch(/a\?\[2J|a\\u001b\[2J|a\\e\[2J|^acc_1|opr_1|key_evil|whk_evil/m)
    // A newline inside of a single-line value starts no line of its own.
    if (name !== 'tickets list' || line.includes('--json')) expect(out + err).not.toMatch(/^forged line/m)
  }
})

test('JSON of a hostile row parses to the same values', async () => {
  const harness = hostile()
  const { out } = await harness.say('keys', 'list', '--json')
  expect((JSON.parse(out) as { name: string }[])[0]?.name).toBe(evil)
})

test('colors come only from svc-router', async () => {
  const harness = hostile()
  harness.colors = true
  const { err } = await harness.say('request', 'req_none')
  expect(err).toContain('\u001b[31merror\u001b[39m')
  const { out } = await harness.say('keys', 'list')
  expect(out).not.toMatch(unsafe)
})

test('commands print only through the safe terminal', () => {
  const folder = join(import.meta.dirname, '../../src/cli')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  // run-program.ts hands the whole terminal to another program.
  const direct = /process\.(stdout|stderr)|console\.(log|error|info|warn)|styleText|from 'node:util'.*styleText|p\{C\}/
  const breaches = files.filter(
    (file) => !['terminal/safe-terminal.ts'].includes(file) && direct.test(readFileSync(join(folder, file), 'utf8')),
  )
  expect(breaches).toEqual([])
})

const hostileRoute = {
  profile: evilLines,
  sort: evilLines,
  refusal: { message: evilLines },
  backends: [{ backend: evilLines, lane: evilLines, share: 1, score: 1, doubts: [evilLines] }],
  left_out: [{ backend: evilLines, reason: evilLines, until: 1 }],
}

async function hostileServer(): Promise<string> {
  const server = createServer((request, response) => {
    const header = encodeURIComponent(evil)
    const isRoute = request.url?.endsWith('/route') === true
    response.writeHead(isRoute || request.url?.includes('catalog') === true ? 200 : 403, {
      'content-type': 'application/json',
      'x-request-id': `req_${header}`,
    })
    const error = { code: evil, message: evilLines, request_id: `req_${evil}`, accountUrl: evil }
    response.end(JSON.stringify(isRoute ? hostileRoute : { error }))
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

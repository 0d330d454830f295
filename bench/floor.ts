// The minimum for a complete answer, built from the parts of svc-router: Node's server, body parsing and validation, our
// upstream connection, the ledger, and the headers. It checks no key, and does not route, fail over, or log. It is for
// comparison only, not a gateway.
import { mkdtempSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Plan } from '../src/domain/plans.ts'
import type { RequestOutcome } from '../src/domain/requests.ts'
import { patchMembers } from '../src/formats/json-scan.ts'
import type { Admission } from '../src/gateway/ports.ts'
import { readJsonBody } from '../src/http/read-body.ts'
import { reliabilityHeaders, usageHeaders } from '../src/http/usage-headers.ts'
import { createBackend } from '../src/providers/backend.ts'
import { createUpstreamPools } from '../src/providers/http/upstream-pools.ts'
import { systemClock } from '../src/runtime/clock.ts'
import { idMinter } from '../src/runtime/ids.ts'
import { systemRandom } from '../src/runtime/random.ts'
import { openSqliteLedger } from '../src/storage/ledger/ledger-sqlite.ts'
import { openSqlite } from '../src/storage/sqlite/open-sqlite.ts'
import type { Listening } from './protocol.ts'

const backlog = 4096
const keepAliveMs = 60_000
const limitMs = 30_000
const maxBytes = 1024 * 1024
const [, , origin, place] = process.argv
if (origin === undefined || place === undefined) throw new Error('usage: floor.ts ORIGIN FOLDER')

const clock = systemClock()
const mintId = idMinter('req_', () => clock.nowMs(), systemRandom())
const timeouts = {
  connectMs: limitMs,
  headersMs: limitMs,
  firstContentMs: limitMs,
  wholeAnswerMs: limitMs,
  idleMs: limitMs,
  totalMs: limitMs,
}
const dialect = { maxTokensField: 'max_tokens', developerRole: true, streamUsage: true, refusedFields: [] } as const
const backend = createBackend(
  {
    id: 'bench-chat',
    failureDomain: 'bench',
    format: 'openai-chat',
    model: 'bench-model',
    simulated: false,
    timeouts,
    dialect,
    baseUrl: `${origin}/v1`,
    authHeader: null,
  },
  createUpstreamPools({ clock, version: 'floor' }),
)
const folder = mkdtempSync(join(place, 'floor-'))
await openSqlite(folder)
const ledger = await openSqliteLedger(folder, clock)
const plan: Plan = { id: 'max', name: 'Max', requestsPerMinute: 1e7, requestsPerMonth: 1e9, premium: true }
const limits = { maxBytes, timeoutMs: limitMs, clock }

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const id = mintId()
  const { bytes, members } = await readJsonBody(request, limits, { spend: () => {} })
  const facts = { id, accountId: 'acc_bench', keyId: 'key_bench', profile: 'svc-router/frontier', units: 1 }
  const admission = await ledger.admit({ ...facts, format: 'openai-chat', stream: false }, plan)
  const startedMs = clock.nowMs()
  const whole = await ask(id, patchMembers(bytes, members, { model: '"bench-model"' }))
  const { usage } = JSON.parse(whole.toString()) as { usage: { prompt_tokens: number; completion_tokens: number } }
  const ms = Math.round(clock.nowMs() - startedMs)
  const outcome: RequestOutcome = {
    charged: 1,
    attempts: [{ backend: 'bench-chat', outcome: 'answered', ms, upstreamRequestId: 'req_bench_upstream' }],
    usage: {
      inputTokens: usage.prompt_tokens,
      outputTokens: usage.completion_tokens,
      cachedTokens: 0,
      reasoningTokens: 0,
      source: 'counted',
    },
    firstContentMs: ms,
    totalMs: ms,
  }
  admission.settle(outcome, 'due')
  await admission.durable()
  send(response, id, admission, whole)
}

function ask(requestId: string, body: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    backend.call(
      { body, stream: false, requestId },
      {
        onHead() {},
        onData: (chunk) => chunks.push(Buffer.from(chunk)),
        onEnd: () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)),
        onError: reject,
      },
    )
  })
}

function send(response: ServerResponse, id: string, admission: Admission, whole: Buffer): void {
  const own = ['Content-Type', 'application/json; charset=utf-8', 'X-Request-Id', id, 'Cache-Control', 'no-store']
  const length = ['Content-Length', String(whole.length)]
  const way = reliabilityHeaders({ upstream: 'bench-chat', retryCount: 0, simulated: false })
  response.writeHead(200, own.concat(length, way, usageHeaders(admission.signals(), clock.nowMs())))
  response.socket?.cork()
  response.write(whole.toString('latin1'), 'latin1')
  admission.deliver()
  response.socket?.uncork()
  response.end()
}

const server = createServer({ keepAliveTimeout: keepAliveMs, noDelay: true }, (request, response) => {
  answer(request, response).catch((error: unknown) => {
    console.error(error)
    response.destroy()
  })
})
server.listen({ host: '127.0.0.1', port: 0, backlog }, () => {
  process.send?.({ port: (server.address() as AddressInfo).port } satisfies Listening)
})
process.on('disconnect', () => process.exit(0))

import { existsSync } from 'node:fs'
import { readAll } from './cli/terminal/read-input.ts'
import type { CliPorts, OpenedStore, RunningApp, Terminal } from './cli/ports.ts'
import { CommandError, exitCodes } from './cli/failures.ts'
import { onNpmExit } from './cli/process/npm-parent.ts'
import { runProgram } from './cli/process/run-program.ts'
import { run } from './cli/run.ts'
import { readVersion } from './runtime/version.ts'
import type { Config } from './config/config.ts'
import { sealingKeys } from './config/sealing-keys.ts'
import { AuditBroken } from './accounts/audit/audit.ts'
import { signRemembered } from './accounts/audit/checkpoints.ts'
import type { AuditStore, CheckpointStore } from './accounts/ports.ts'
import { errorName } from './runtime/describe-bug.ts'
import { checkpointKeys } from './domain/checkpoint.ts'
import { systemClock } from './runtime/clock.ts'
import { idMinter } from './runtime/ids.ts'
import { openProviderErrors } from './domain/provider-error.ts'
import { systemRandom } from './runtime/random.ts'
import { createSealer } from './runtime/sealer.ts'
import { SetupError } from './runtime/setup-error.ts'
import { openLog } from './app/log.ts'
import { openLogOutput } from './app/log-output.ts'
import { openEvalModels } from './eval-models.ts'
import { planRouteAlone } from './app/route-planner.ts'
import { openStore } from './app/storage.ts'
import { openUpstream } from './providers/catalog.ts'
import { testUpstream } from './providers/test-upstream.ts'
import { proveQuotasOnSqlite } from './storage/ledger/prove-quotas-sqlite.ts'
import { createUpstreamPools } from './providers/http/upstream-pools.ts'
import { createVault, type Vault } from './providers/auth/vault.ts'
import { releaseStartMemory } from './app/release-memory.ts'
import { checkpointFile } from './storage/checkpoint-file.ts'
import { DataFolderInUse } from './storage/sqlite/data-folder-lock.ts'
import { LedgerUnavailable } from './storage/ledger/ledger-unavailable.ts'
import { SchemaMismatch } from './storage/migrations/migrate.ts'
import { databasePath } from './storage/sqlite/connect-sqlite.ts'

const debugEnv = 'SVC_ROUTER_DEBUG'
/** Names, with commas between, what bin/boot.mjs set for this process alone. */
const setByBootEnv = 'SVC_ROUTER_SET_BY_BOOT'
const poolCloseMs = 1000

const npmParent = process.env['SVC_ROUTER_NPM_PARENT']
for (const name of [...(process.env[setByBootEnv] ?? '').split(','), setByBootEnv]) delete process.env[name]

const clock = systemClock()
const random = systemRandom()

const ports: CliPorts = {
  clock,
  random,
  hasStore: (config) => existsSync(databasePath(config.dataDir)),
  openStore: (config) => openCliStore(config).catch(inOwnWords),
  startApp: (config) => startService(config).catch(inOwnWords),
  sealer(config) {
    const vault = vaultFor(config)
    return (accountId, credentialId, secret) => vault.seal(accountId, credentialId, secret)
  },
  openErrors: (config, sealed) => openProviderErrors(createSealer({ ...sealingKeys(config.secrets), random }), sealed),
  runProgram: (program) => runProgram(program, process.env, process.stdin.isTTY),
  async testUpstream(config, upstream) {
    const pools = createUpstreamPools({ clock, version: readVersion() })
    try {
      const requestId = idMinter('req_', () => clock.nowMs(), random)()
      const publicOnly = config.mode === 'production'
      const backend = openUpstream(upstream, { vault: vaultFor(config), pools, publicOnly })
      return await testUpstream(backend, { clock, requestId })
    } finally {
      await pools.close(poolCloseMs)
    }
  },
  planRoute: (config, asker, question) => planRouteAlone(config, { clock, random }, asker, question).catch(inOwnWords),
  openModels: (config, accountId, voice) =>
    openEvalModels(config, { accountId, voice, clock, random, onBug: tellBug }).catch(inOwnWords),
}

async function openCliStore(config: Config): Promise<OpenedStore> {
  const store = await openStore(config)
  const found = await store.auditHead()
  const checkpoints = checkpointFile(config.dataDir)
  return {
    accounts: store,
    audit: store,
    checkpoints,
    managed: store,
    backends: store,
    proveQuotas: () => proveQuotasOnSqlite(databasePath(config.dataDir)),
    billing: store.billing,
    proofs: store,
    operators: store.operators,
    incidents: store,
    tickets: store,
    requests: {
      find: (id) => store.findRequest(id),
      refused: (selection) => store.sumRefused(selection),
      errorsOf: (requestId, accountId) => store.listProviderErrors(requestId, accountId),
      list: (limit, accountId) => store.listRequests({ limit, ...(accountId === undefined ? {} : { accountId }) }),
    },
    async close() {
      try {
        const { sequence } = await store.auditHead()
        if (sequence !== found.sequence) await signAudit(config, store, checkpoints)
      } finally {
        await store.close()
      }
    },
  }
}

/** What a command changed is signed at once: no service may be running that does it. */
async function signAudit(config: Config, store: AuditStore, memory: CheckpointStore): Promise<void> {
  try {
    await signRemembered({ store, keys: checkpointKeys(sealingKeys(config.secrets)), memory }, clock.nowMs())
  } catch (error) {
    if (!(error instanceof AuditBroken)) throw error
    terminal.err('warning: the audit log does not hold\n  = fix: see where and why: npx svc-router audit verify')
  }
}

/** The service itself. Its log goes to standard error, one JSON line for each event. */
async function startService(config: Config): Promise<RunningApp> {
  const { log, end } = openLog({
    write: openLogOutput(),
    requests: (process.env['SVC_ROUTER_LOG_REQUESTS'] ?? '') !== '',
    nowMs: () => clock.nowMs(),
  })
  // Only the service needs all of its parts: other commands start in half the time.
  const { startApp } = await import('./app/app.ts')
  const app = await startApp(config, { clock, random, log })
  releaseStartMemory()
  return {
    config: app.config,
    stopped: app.failed.then((reason) => {
      throw new CommandError(
        exitCodes.failure,
        `requests cannot be recorded any more (${reason}), so the service has stopped`,
        'start it again; what was under way is decided then',
      )
    }),
    async stop() {
      try {
        await app.stop().catch(inOwnWords)
      } finally {
        await end()
      }
    },
  }
}

function vaultFor(config: Config): Vault {
  return createVault({ ...sealingKeys(config.secrets), random })
}

/** The storage's own errors as sentences for the operator; others pass. */
function inOwnWords(error: unknown): never {
  if (error instanceof DataFolderInUse)
    throw new SetupError(
      'the data folder is in use: another svc-router runs on it',
      'stop that one, or choose another folder: --data FOLDER',
    )
  if (error instanceof SchemaMismatch)
    throw new SetupError(
      'the database was written by another version of svc-router',
      'start the newer version, or choose another folder: --data FOLDER',
    )
  if (error instanceof LedgerUnavailable)
    throw new CommandError(
      exitCodes.failure,
      'the last requests could not be recorded before the end',
      'see ledger_failing in the log for why; the next start decides what was under way',
    )
  throw error
}

const terminal: Terminal = {
  env: process.env,
  colors: process.stdout.isTTY && process.stderr.isTTY && (process.env['NO_COLOR'] ?? '') === '',
  stdinIsTty: process.stdin.isTTY,
  out: (text) => void process.stdout.write(`${text}\n`),
  err: (text) => void process.stderr.write(`${text}\n`),
  readStdin: () => readAll(process.stdin),
  onStop(stop) {
    const onSignal = (): void => {
      if (stopping) process.exit(1)
      stopping = true
      stop()
    }
    let stopping = false
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)
    onNpmExit({ startedUnder: npmParent, parentId: () => process.ppid }, () => {
      if (!stopping) onSignal()
    })
  },
}

function tellBug(error: unknown): void {
  terminal.err(
    `error: something went wrong that should not have (${errorName(error)})\n  = fix: run the command again with ${debugEnv}=1 and report what it prints`,
  )
  if ((process.env[debugEnv] ?? '') !== '')
    terminal.err(error instanceof Error ? (error.stack ?? error.message) : String(error))
}

process.on('uncaughtException', (error) => {
  tellBug(error)
  process.exit(1)
})
// Whoever reads our output may leave before its end.
process.stdout.on('error', () => process.exit(0))
// Whoever reads the log may leave too, and the service goes on: its records do not depend on the log.
process.stderr.on('error', () => {})

try {
  process.exitCode = await run(process.argv.slice(2), terminal, ports)
} catch (error) {
  tellBug(error)
  process.exitCode = 1
}

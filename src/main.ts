import { Socket } from 'node:net'
import { constants, setPriority } from 'node:os'
import { AuditBroken } from './accounts/audit/audit.ts'
import { signRemembered } from './accounts/audit/checkpoints.ts'
import type { AuditStore, CheckpointStore } from './accounts/ports.ts'
import type { AppOptions } from './app/app.ts'
import { openLogOutput } from './app/log-output.ts'
import { openLog } from './app/log.ts'
import { optimizeAfterRequests } from './app/optimize-early.ts'
import type { Owner } from './app/owner.ts'
import { releaseStartMemory } from './app/release-memory.ts'
import { sealedValues } from './app/rotate-secrets.ts'
import { createRuntime, type Runtime } from './app/runtime.ts'
import { readServiceHealth } from './app/service-health.ts'
import { hasStore, openStore, proveQuotas } from './app/storage.ts'
import { CommandError, exitCodes } from './cli/failures.ts'
import type { CliPorts, OpenedStore, RunningApp, Terminal } from './cli/ports.ts'
import { onParentExit } from './cli/process/parent-exit.ts'
import { runProgram } from './cli/process/run-program.ts'
import {
  configOfWorker,
  ownerSocketFd,
  readGivenConfig,
  readWorkerPlace,
  startWorkers,
  workerEnv,
  type WorkerPlace,
} from './cli/process/workers.ts'
import { run } from './cli/run.ts'
import { readAll } from './cli/terminal/read-input.ts'
import { type Config, withPorts } from './config/config.ts'
import { checkpointKeys } from './domain/checkpoint.ts'
import type { EventLog } from './domain/events.ts'
import { openProviderErrors } from './domain/provider-error.ts'
import { createVault, type Vault } from './providers/auth/vault.ts'
import { openUpstream } from './providers/catalog.ts'
import { createUpstreamPools } from './providers/http/upstream-pools.ts'
import { testUpstream } from './providers/test-upstream.ts'
import { systemClock } from './runtime/clock.ts'
import { errorName } from './runtime/describe-bug.ts'
import { systemRandom } from './runtime/random.ts'
import { createSealer } from './runtime/sealer.ts'
import { SetupError } from './runtime/setup-error.ts'
import { StoreUnavailable } from './runtime/store-unavailable.ts'
import { readVersion } from './runtime/version.ts'
import { checkpointFile } from './storage/checkpoint-file.ts'
import { LedgerUnavailable } from './storage/ledger/ledger-unavailable.ts'
import { SchemaMismatch } from './storage/migrations/migrate.ts'
import { DataFolderInUse } from './storage/sqlite/data-folder-lock.ts'

const debugEnv = 'SVC_ROUTER_DEBUG'
/** The names of the variables, separated by commas, that bin/boot.mjs set for this process only. */
const setByBootEnv = 'SVC_ROUTER_SET_BY_BOOT'
/** A signal to a process group arrives several times: from the system, and from each process that passes it on. */
const repeatedSignalMs = 2_000
const poolCloseMs = 1000

const parentEnv = 'SVC_ROUTER_PARENT'
const startedUnder = process.env[parentEnv]
/** What the parent told this process, if it is a worker. */
const place = readWorkerPlace(process.env[workerEnv])
const terminalSignals = ['SIGINT', 'SIGHUP'] as const
// A terminal also sends its signals to workers. They ignore them, even while they start: a worker ends when its parent stops
// it or dies.
if (place !== undefined) for (const signal of terminalSignals) process.on(signal, () => {})
/** The environment of workers: the one that this process got from bin/boot.mjs. */
const workersEnv = { ...process.env, [parentEnv]: undefined }
delete process.env[workerEnv]
for (const name of [...(process.env[setByBootEnv] ?? '').split(','), setByBootEnv]) delete process.env[name]

const clock = systemClock()
const random = systemRandom()

const ports: CliPorts = {
  worker: place && { readConfig: readGivenConfig },
  clock,
  random,
  hasStore,
  openStore: (config) => openCliStore(config).catch(explainStorageError),
  startApp: (config) => startProcesses(config).catch(explainStorageError),
  sealer(config) {
    const vault = vaultFor(config)
    return (accountId, credentialId, secret) => vault.seal(accountId, credentialId, secret)
  },
  valueSealer: (config) => createSealer({ ...runtimeFor(config).keys, random }),
  openErrors: (config, sealed) => openProviderErrors(createSealer({ ...runtimeFor(config).keys, random }), sealed),
  runProgram: (program) => runProgram(program, process.env, process.stdin.isTTY),
  async testUpstream(config, upstream) {
    const pools = createUpstreamPools({ clock, version: readVersion() })
    try {
      const requestId = runtimeFor(config).mintRequestId()
      const publicOnly = config.mode === 'production'
      const backend = openUpstream(upstream, { vault: vaultFor(config), pools, publicOnly })
      return await testUpstream(backend, { clock, requestId })
    } finally {
      await pools.close(poolCloseMs)
    }
  },
  // Loaded only for these commands: the service and the others start without them.
  async backup(config, options) {
    const { takeBackup } = await import('./app/backup.ts')
    yieldToService()
    return takeBackup(runtimeFor(config), options).catch(explainStorageError)
  },
  async inspectBackup(config, options) {
    const { inspectBackup } = await import('./app/restore.ts')
    return inspectBackup(runtimeFor(config), options).catch(explainStorageError)
  },
  async restore(config, options) {
    const { restoreBackup } = await import('./app/restore.ts')
    return restoreBackup(runtimeFor(config), options).catch(explainStorageError)
  },
  async moveData(config, to) {
    const { moveToPostgres, moveToSqlite } = await import('./app/move-data.ts')
    return (to === 'postgres' ? moveToPostgres : moveToSqlite)(runtimeFor(config)).catch(explainStorageError)
  },
  async planRouting(config, asker, question) {
    const { planRoutingAlone } = await import('./app/routing-planner.ts')
    return planRoutingAlone(runtimeFor(config), asker, question).catch(explainStorageError)
  },
  async replay(config, options) {
    const { replayAlone } = await import('./app/replay.ts')
    return replayAlone(runtimeFor(config), options).catch(explainStorageError)
  },
  async openModels(config, accountId, voice) {
    const { openEvalModels } = await import('./eval-models.ts')
    const options = { accountId, voice, clock, random, onBug: reportBug }
    return openEvalModels(config, options).catch(explainStorageError)
  },
  async openDemoService(options) {
    const { openDemoService } = await import('./demo-service.ts')
    return openDemoService(options, random)
  },
}

/** Gives the processor to the service first. Where a sandbox forbids that, the copy still pauses by itself. */
function yieldToService(): void {
  try {
    setPriority(constants.priority.PRIORITY_LOW)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SYSTEM_ERROR') throw error
  }
}

/** What commands share that need no running service. They log nothing. */
function runtimeFor(config: Config): Runtime {
  return createRuntime(config, { clock, random, log: () => {} })
}

async function openCliStore(config: Config): Promise<OpenedStore> {
  const store = await openStore(config)
  const before = await store.auditHead()
  const checkpoints = checkpointFile(config.dataDir)
  return {
    accounts: store,
    budgets: store,
    webhooks: store,
    audit: store,
    checkpoints,
    managed: store,
    backends: store,
    changes: store,
    adminTokens: store,
    transactions: store.declared,
    proveQuotas: () => proveQuotas(config),
    billing: store.billing,
    proofs: store,
    operators: store.operators,
    sealed: sealedValues(runtimeFor(config), store),
    health: () => readServiceHealth(store, () => clock.nowMs()),
    incidents: store,
    tickets: store,
    requests: {
      find: (id) => store.findRequest(id),
      refused: (selection) => store.sumRefused(selection),
      cache: (selection) => store.addUpCache(selection),
      sessions: (accountId, selection) => store.addUpSessions(accountId, selection),
      session: (accountId, session) => store.findSessionCost(accountId, session),
      errorsOf: (requestId, accountId) => store.listProviderErrors(requestId, accountId),
      list: (limit, accountId) => store.listRequests({ limit, ...(accountId === undefined ? {} : { accountId }) }),
    },
    async close() {
      try {
        const { sequence } = await store.auditHead()
        if (sequence !== before.sequence) await signAudit(config, store, checkpoints)
      } finally {
        await store.close()
      }
    },
  }
}

/** Signs a command's changes immediately, because a service that signs them may not be running. */
async function signAudit(config: Config, store: AuditStore, memory: CheckpointStore): Promise<void> {
  try {
    await signRemembered({ store, keys: checkpointKeys(runtimeFor(config).keys), memory }, clock.nowMs())
  } catch (error) {
    if (!(error instanceof AuditBroken)) throw error
    terminal.err('warning: the audit log is broken\n  = fix: see where and why: npx svc-router audit verify')
  }
}

/** Starts the service in this process, or the workers that serve together. */
async function startProcesses(config: Config): Promise<RunningApp> {
  if (place !== undefined) {
    const app = await startWorker(config, place)
    process.send?.('listening')
    process.channel?.unref()
    return app
  }
  if (config.workers === 1) return await startService(config)
  return await startParent(config)
}

/** Starts the workers, and serves their metrics. */
async function startParent(config: Config): Promise<RunningApp> {
  const [{ WorkerReports }, { openWorkersMetrics }] = await Promise.all([
    import('./app/worker-reports.ts'),
    import('./app/metrics.ts'),
  ])
  await using opened = new AsyncDisposableStack()
  const { log, end } = openServiceLog()
  opened.defer(end)
  const owner = config.databaseUrl === undefined ? await startDatabaseOwner(config, log) : undefined
  opened.defer(() => owner?.stop().catch(explainStorageError))
  const reports = new WorkerReports()
  const metrics = opened.use(await openWorkersMetrics(config, reports, log))
  const workers = await startWorkers(config, {
    env: workersEnv,
    onSpawned: (child) => reports.add(child),
    onDied: (died) => log({ event: 'worker_died', ...died }),
    host: owner,
  })
  opened.defer(() => workers.stop())
  const owned = opened.move()
  const { listen, appListen } = workers.config
  return {
    config: withPorts(workers.config, { api: listen.port, app: appListen.port, metrics: metrics?.port }),
    stopped: owner === undefined ? workers.stopped : owner.failed.then(throwUnrecorded),
    stop: () => owned.disposeAsync(),
  }
}

/** Loaded only if workers share a SQLite database. */
async function startDatabaseOwner(config: Config, log: EventLog): Promise<Owner> {
  const { startOwner } = await import('./app/owner.ts')
  return startOwner(config, { clock, random, log })
}

async function startWorker(config: Config, { number, ...place }: WorkerPlace): Promise<RunningApp> {
  if (place.version !== readVersion())
    throw new SetupError(
      `this worker has version ${readVersion()}, and the service that started it has version ${place.version}`,
      'restart the service: it was upgraded while it was running',
    )
  const { linkToParent } = await import('./app/worker-reports.ts')
  const parent = linkToParent(process)
  const own = configOfWorker(config, { number, ...place })
  if (config.databaseUrl !== undefined) return startService(own, { parent })
  const { openWorkerStorage } = await import('./app/storage-worker.ts')
  const socket = new Socket({ fd: ownerSocketFd })
  // Nothing can be recorded anymore, and the next start decides what was delivered.
  const onLost = (): void => process.exit(1)
  const openStorage: AppOptions['openStorage'] = (runtime) =>
    openWorkerStorage(runtime, { worker: number, socket, onLost })
  return startService(own, { parent, openStorage })
}

function openServiceLog(): ReturnType<typeof openLog> {
  return openLog({
    write: openLogOutput(),
    requests: (process.env['SVC_ROUTER_LOG_REQUESTS'] ?? '') !== '',
    worker: place?.number,
    nowMs: () => clock.nowMs(),
  })
}

/** Starts the service. Its log goes to standard error, one JSON line per event. */
async function startService(
  config: Config,
  options: Pick<AppOptions, 'parent' | 'openStorage'> = {},
): Promise<RunningApp> {
  const { log, end } = openServiceLog()
  // Loaded only for the service, so that other commands start in half the time.
  const { startApp } = await import('./app/app.ts')
  const app = await startApp(config, { clock, random, log: optimizeAfterRequests(log), ...options })
  releaseStartMemory()
  return {
    config: app.config,
    stopped: app.failed.then(throwUnrecorded),
    async stop() {
      try {
        await app.stop().catch(explainStorageError)
      } finally {
        await end()
      }
    },
  }
}

function throwUnrecorded(reason: string): never {
  throw new CommandError(
    exitCodes.failure,
    `requests can no longer be recorded (${reason}), so the service stopped`,
    'start it again; the next start settles interrupted requests',
  )
}

function vaultFor(config: Config): Vault {
  return createVault({ ...runtimeFor(config).keys, random })
}

/** Explains errors of the storage to the operator, and throws all others unchanged. */
function explainStorageError(error: unknown): never {
  if (error instanceof DataFolderInUse)
    throw new SetupError(
      'the data folder is in use by another svc-router process',
      'stop it, or choose another folder: --data FOLDER',
    )
  if (error instanceof SchemaMismatch)
    throw new SetupError(
      'the database was written by a different version of svc-router',
      'start the newest version that used it, or choose another folder: --data FOLDER',
    )
  if (error instanceof StoreUnavailable)
    throw new CommandError(
      exitCodes.unreachable,
      'the database does not answer',
      'check that PostgreSQL is running and accepts writes at the URL in the environment variable that database.url_env names',
    )
  if (error instanceof LedgerUnavailable)
    throw new CommandError(
      exitCodes.failure,
      'the last requests could not be recorded before shutdown',
      'see ledger_failing in the log for the reason; the next start settles interrupted requests',
    )
  throw error
}

const terminal: Terminal = {
  env: process.env,
  colors: process.stdout.isTTY && process.stderr.isTTY && (process.env['NO_COLOR'] ?? '') === '',
  stdinIsTty: process.stdin.isTTY,
  out: (text) => void process.stdout.write(`${text}\n`),
  err: (text) => void process.stderr.write(`${text}\n`),
  readStdin: (maxFileBytes) => readAll(process.stdin, undefined, maxFileBytes),
  onStop(stop) {
    let stoppedMs: number | undefined
    const stopOnce = (): void => {
      if (stoppedMs !== undefined) return
      stoppedMs = performance.now()
      stop()
    }
    const onSignal = (): void => {
      if (stoppedMs !== undefined && performance.now() - stoppedMs > repeatedSignalMs) process.exit(1)
      stopOnce()
    }
    if (place === undefined) for (const signal of terminalSignals) process.on(signal, onSignal)
    process.on('SIGTERM', onSignal)
    if (place !== undefined) process.once('disconnect', stopOnce)
    onParentExit({ startedUnder, parentId: () => process.ppid }, stopOnce)
  },
}

function reportBug(error: unknown): void {
  terminal.err(
    `error: there is a bug in svc-router (${errorName(error)})\n  = fix: run the command again with ${debugEnv}=1 and report what it prints`,
  )
  if ((process.env[debugEnv] ?? '') !== '')
    terminal.err(error instanceof Error ? (error.stack ?? error.message) : String(error))
}

process.on('uncaughtException', (error) => {
  reportBug(error)
  process.exit(1)
})
// The reader of the output may close the pipe early.
process.stdout.on('error', () => process.exit(0))
// If the reader of the log closes the pipe, the service keeps running: its records do not depend on the log.
process.stderr.on('error', () => {})

try {
  process.exitCode = await run(process.argv.slice(2), terminal, ports)
} catch (error) {
  reportBug(error)
  process.exitCode = 1
}

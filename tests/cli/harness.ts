import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RestoredBackup } from '../../src/accounts/backups.ts'
import type { ProofDigests } from '../../src/accounts/ports.ts'
import { takeBackup } from '../../src/app/backup.ts'
import { moveToPostgres, moveToSqlite } from '../../src/app/move-data.ts'
import { replayAlone } from '../../src/app/replay.ts'
import { inspectBackup, restoreBackup } from '../../src/app/restore.ts'
import { sealedValues } from '../../src/app/rotate-secrets.ts'
import { planRoutingAlone } from '../../src/app/routing-planner.ts'
import { createRuntime, type Runtime } from '../../src/app/runtime.ts'
import { readServiceHealth } from '../../src/app/service-health.ts'
import { openStore } from '../../src/app/storage.ts'
import type { OpenDemoService } from '../../src/cli/commands/demo/demo-ports.ts'
import type { CliPorts, Program, RunningApp, Terminal } from '../../src/cli/ports.ts'
import { run } from '../../src/cli/run.ts'
import { type Config, withPorts } from '../../src/config/config.ts'
import { openDemoService } from '../../src/demo-service.ts'
import type { CacheGroup } from '../../src/domain/cache-usage.ts'
import type { SignInProof } from '../../src/domain/identity.ts'
import type { SealedProviderError } from '../../src/domain/provider-error.ts'
import type { RefusedCount } from '../../src/domain/refused-requests.ts'
import type { RequestRecord } from '../../src/domain/requests.ts'
import { type KnownNode, ServiceHealth } from '../../src/domain/service-health.ts'
import type { SessionCost } from '../../src/domain/session-costs.ts'
import type { Ticket } from '../../src/domain/tickets.ts'
import type { UpstreamTest } from '../../src/domain/upstream.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { createSealer } from '../../src/runtime/sealer.ts'
import { checkpointFile } from '../../src/storage/checkpoint-file.ts'
import type { Store } from '../../src/storage/store.ts'
import { MemoryIncidents } from '../accounts/memory-incidents.ts'
import { MemoryStore } from '../accounts/memory-store.ts'
import { MemoryBillingStore } from '../billing/memory-billing-store.ts'

export interface Spoken {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** The command line with a store in memory and its own folder. */
export class Harness {
  readonly folder = mkdtempSync(join(tmpdir(), 'svc-router-cli-'))
  readonly dataDir = join(this.folder, 'data')
  readonly store = new MemoryStore()
  readonly billing = new MemoryBillingStore(this.store)
  readonly records: RequestRecord[] = []
  readonly refused: RefusedCount[] = []
  readonly cache: CacheGroup[] = []
  readonly sessions: SessionCost[] = []
  /** Errors of backends; `sealed` is not encrypted here. */
  readonly errors: SealedProviderError[] = []
  /** The created links, as stored. */
  readonly proofs: (SignInProof & { readonly digests: ProofDigests })[] = []
  readonly incidents = new MemoryIncidents()
  tickets: Ticket[] = []
  hasStore = true
  /** What nodes report. */
  nodes: KnownNode[] = []
  /** Whether the database of the data folder is used instead of the store in memory. */
  isStoreReal = false
  /** The store for the audit log and managed access, if a command needs them. It then also has the accounts. */
  real: Store | undefined
  /** The operators, if a test sets them. */
  operators: Store['operators'] | undefined
  /** Of the quotas. */
  proof: () => Promise<void> = () => Promise.resolve()
  env: Record<string, string> = {}
  stdin = ''
  stdinIsTty = false
  colors = false
  /** The error that opening the store or the app throws. */
  openFailure: Error | undefined
  startFailure: Error | undefined
  /** The reason for which the app stops on its own. */
  stopFailure: Error | undefined
  /** What a restore tells, instead of a real one. */
  restored: RestoredBackup | undefined
  test: UpstreamTest = { outcome: 'answered', status: 200, ms: 12.4 }
  readonly seen: string[] = []
  /** The started program, and its simulated exit code. */
  readonly programs: Program[] = []
  programExitCode = 0
  /** The models of an evaluation. Default: none. */
  openModels: CliPorts['openModels'] = () =>
    Promise.resolve({
      candidates: [],
      callModel: () => Promise.reject(new Error('no model is there')),
      close: () => Promise.resolve(),
    })
  /** The service of a demo. Default: the real one. */
  openDemoService: OpenDemoService = (options) => openDemoService(options, systemRandom())
  /** When the process receives a stop signal. Default: immediately. */
  onStop: (stop: () => void) => void = (stop) => void setImmediate(stop)
  /** Called while a started app runs. */
  onStarted: () => void = () => {}

  async say(...args: readonly string[]): Promise<Spoken> {
    const out: string[] = []
    const err: string[] = []
    const terminal: Terminal = {
      env: this.env,
      colors: this.colors,
      stdinIsTty: this.stdinIsTty,
      out: (text) => void out.push(text),
      err: (text) => void err.push(text),
      readStdin: () => Promise.resolve(this.stdin),
      onStop: (stop) =>
        this.onStop(() => {
          this.onStarted()
          stop()
        }),
    }
    const end = args.includes('--') ? args.indexOf('--') : args.length
    const line = args.length === 0 ? [] : [...args.slice(0, end), '--data', this.dataDir, ...args.slice(end)]
    const code = await run(line, terminal, this.#ports())
    return { code, out: out.join('\n'), err: err.join('\n') }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  #runtime(config: Config): Runtime {
    return createRuntime(config, { clock: systemClock(), random: systemRandom(), log: () => {} })
  }

  #ports(): CliPorts {
    return {
      clock: systemClock(),
      worker: undefined,
      random: systemRandom(),
      hasStore: () => this.hasStore,
      openStore: async (config) => {
        if (this.openFailure !== undefined) throw this.openFailure
        this.seen.push('open')
        if (this.isStoreReal) {
          const store = await openStore(config)
          const requests = {
            find: () => Promise.resolve(undefined),
            list: () => Promise.resolve([]),
            errorsOf: () => Promise.resolve([]),
            refused: () => Promise.resolve([]),
            cache: () => Promise.resolve([]),
            sessions: () => Promise.resolve([]),
            session: () => Promise.resolve(undefined),
          }
          return {
            accounts: store,
            budgets: store,
            webhooks: store,
            audit: store,
            checkpoints: checkpointFile(config.dataDir),
            managed: store,
            backends: store,
            changes: store,
            adminTokens: store,
            transactions: store.declared,
            billing: store.billing,
            proveQuotas: () => this.proof(),
            requests,
            proofs: store,
            operators: store.operators,
            incidents: store,
            tickets: store,
            sealed: sealedValues(this.#runtime(config), store),
            health: () => readServiceHealth(store, Date.now),
            close: () => store.close(),
          }
        }
        const none = {} as Store
        return {
          accounts: this.real ?? this.store,
          budgets: this.real ?? none,
          webhooks: this.real ?? none,
          audit: this.real ?? none,
          checkpoints: checkpointFile(this.folder),
          managed: this.real ?? none,
          backends: this.real ?? none,
          changes: this.real ?? (this.store as unknown as Store),
          adminTokens: this.real ?? none,
          transactions: this.real?.declared ?? this.store,
          proveQuotas: () => this.proof(),
          billing: this.billing,
          operators: this.operators ?? none.operators,
          sealed: sealedValues(this.#runtime(config), this.real ?? none),
          health: () => Promise.resolve(new ServiceHealth(this.nodes, Date.now())),
          requests: {
            errorsOf: (requestId, accountId) =>
              Promise.resolve(
                this.errors.filter((error) => error.requestId === requestId && error.accountId === accountId),
              ),
            find: (id) => Promise.resolve(this.records.find((record) => record.id === id)),
            cache: () => Promise.resolve(this.cache),
            sessions: () => Promise.resolve(this.sessions),
            session: (_, id) => Promise.resolve(this.sessions.find(({ session }) => session === id)),
            refused: ({ accountId, limit }) =>
              Promise.resolve(
                this.refused
                  .filter((count) => accountId === undefined || count.accountId === accountId)
                  .slice(0, limit),
              ),
            list: (limit, accountId) =>
              Promise.resolve(
                this.records
                  .filter((record) => accountId === undefined || record.accountId === accountId)
                  .slice(0, limit),
              ),
          },
          incidents: this.incidents,
          tickets: this.real ?? {
            ...none,
            listTickets: (limit, { state } = {}) =>
              Promise.resolve(
                this.tickets
                  .filter(({ closedAtMs }) => state === undefined || (closedAtMs === null) === (state === 'open'))
                  .slice(0, limit),
              ),
          },
          proofs: {
            addProof: (proof, digests) => {
              this.proofs.push({ ...proof, digests })
              return Promise.resolve()
            },
          },
          close: () => {
            this.seen.push('close')
            return Promise.resolve()
          },
        }
      },
      startApp: async (config): Promise<RunningApp> => {
        if (this.startFailure !== undefined) throw this.startFailure
        this.seen.push('start')
        // Like the real storage.
        mkdirSync(config.dataDir, { recursive: true })
        return {
          config: withPorts(config, {
            api: config.listen.port === 0 ? 4242 : config.listen.port,
            app: config.appListen.port === 0 ? 4343 : config.appListen.port,
          }),
          stopped: this.stopFailure === undefined ? new Promise(() => {}) : Promise.reject(this.stopFailure),
          stop: () => {
            this.seen.push('stop')
            return Promise.resolve()
          },
        }
      },
      sealer: () => (accountId, id, secret) => `sealed ${accountId} ${id} ${secret.reveal().length}`,
      valueSealer: (config) => createSealer({ ...this.#runtime(config).keys, random: systemRandom() }),
      openErrors: (_, sealed) => sealed.map(({ sealed: text, ...error }) => ({ ...error, text })),
      runProgram: (program) => {
        this.programs.push(program)
        return Promise.resolve(this.programExitCode)
      },
      backup: (config, options) => takeBackup(this.#runtime(config), options),
      inspectBackup: async (config, options) => this.restored ?? inspectBackup(this.#runtime(config), options),
      restore: async (config, options) => this.restored ?? restoreBackup(this.#runtime(config), options),
      moveData: (config, to) => (to === 'postgres' ? moveToPostgres : moveToSqlite)(this.#runtime(config)),
      testUpstream: () => Promise.resolve(this.test),
      planRouting: (config, caller, question) => planRoutingAlone(this.#runtime(config), caller, question),
      replay: (config, options) => replayAlone(this.#runtime(config), options),
      openModels: (config, accountId, voice) => this.openModels(config, accountId, voice),
      openDemoService: (options) => this.openDemoService(options),
    }
  }
}

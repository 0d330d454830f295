import type { AdminTokenStore } from '../accounts/admin/admin-ports.ts'
import type { WebhookDeps } from '../accounts/alerts/webhooks.ts'
import type { BackendControlStore } from '../accounts/backends/backend-ports.ts'
import type {
  BackupOptions,
  CheckedBackup,
  MovedData,
  RestoredBackup,
  RestoreOptions,
  TakenBackup,
} from '../accounts/backups.ts'
import type { BillingStore } from '../accounts/billing/ports.ts'
import type { BudgetDeps } from '../accounts/budgets.ts'
import type { ChangeStore, DeclaredStore } from '../accounts/declared/declared-ports.ts'
import type { OperatorStore } from '../accounts/operators/operator-ports.ts'
import type {
  AccountStore,
  AuditStore,
  CacheSelection,
  CheckpointStore,
  IdentityStore,
  ManagedAccessStore,
} from '../accounts/ports.ts'
import type { StatusStore } from '../accounts/status/status-ports.ts'
import type { SupportStore } from '../accounts/support/support-ports.ts'
import type { SealCredential } from '../accounts/upstreams.ts'
import type { Config } from '../config/config.ts'
import type { Upstream } from '../domain/accounts.ts'
import type { CacheGroup } from '../domain/cache-usage.ts'
import type { Plan } from '../domain/plans.ts'
import type { ProviderError, SealedProviderError } from '../domain/provider-error.ts'
import type { RefusedCount, RefusedSelection } from '../domain/refused-requests.ts'
import type { ReplayOptions, ReplayReport } from '../domain/replay.ts'
import type { RequestRecord } from '../domain/requests.ts'
import type { RoutingPlan, RoutingQuestion } from '../domain/routing-plan.ts'
import type { ServiceHealth } from '../domain/service-health.ts'
import type { SessionCost, SessionSelection } from '../domain/session-costs.ts'
import type { UpstreamTest } from '../domain/upstream.ts'
import type { OpenedModels } from '../eval/ports.ts'
import type { SimulatedVoice } from '../eval/simulated-world.ts'
import type { Clock } from '../runtime/clock.ts'
import type { RandomBytes } from '../runtime/random.ts'
import type { Resealed, Sealer } from '../runtime/sealer.ts'
import type { OpenDemoService } from './commands/demo/demo-ports.ts'

/** Read access to request records. */
export interface RequestReader {
  /** The provider errors of a request: of one account's backends or, with null, of the operator's. */
  errorsOf(requestId: string, accountId: string | null): Promise<readonly SealedProviderError[]>
  find(id: string): Promise<RequestRecord | undefined>
  /** Newest first, at most `limit`, of one account or of all. */
  list(limit: number, accountId: string | undefined): Promise<readonly RequestRecord[]>
  /** Counts of rejected requests, which have no record, by account and error. */
  refused(selection: RefusedSelection): Promise<readonly RefusedCount[]>
  /** What providers read from their caches, of one account or of all. */
  cache(selection: CacheSelection): Promise<readonly CacheGroup[]>
  /** The most expensive sessions of an account. */
  sessions(accountId: string, selection: SessionSelection): Promise<readonly SessionCost[]>
  /** What one session of an account cost; undefined if it has no request. */
  session(accountId: string, session: string): Promise<SessionCost | undefined>
}

/** All encrypted values of the store. */
interface SealedValues {
  /** How many are not encrypted with the current sealing key. */
  countOthers(): Promise<number>
  /** How many are encrypted with neither the current nor the previous sealing key. */
  countUnreadable(): Promise<number>
  /** How many usable keys have not been used since the pepper changed. */
  countKeys(): Promise<number>
  /** Encrypts those with the current sealing key. */
  reseal(): Promise<Resealed>
}

/** The store, open while a command uses it. */
export interface OpenedStore {
  readonly accounts: AccountStore
  readonly budgets: BudgetDeps['store']
  readonly webhooks: WebhookDeps['store']
  readonly audit: AuditStore
  readonly checkpoints: CheckpointStore
  readonly managed: ManagedAccessStore
  readonly backends: BackendControlStore
  readonly changes: ChangeStore
  readonly adminTokens: AdminTokenStore
  readonly transactions: DeclaredStore
  /** Rejects if a quota write is not visible on a new connection. */
  proveQuotas(): Promise<void>
  readonly billing: BillingStore
  readonly requests: RequestReader
  readonly tickets: Pick<SupportStore, 'listTickets' | 'findTicket' | 'closeTicket'>
  readonly incidents: Pick<StatusStore, 'addIncident' | 'addIncidentUpdate' | 'listIncidents'>
  readonly proofs: Pick<IdentityStore, 'addProof'>
  readonly operators: OperatorStore
  readonly sealed: SealedValues
  /** What the nodes of the service report. A single process on SQLite reports nothing. */
  health(): Promise<ServiceHealth>
  close(): Promise<void>
}

/** The running service. */
export interface RunningApp {
  /** The configuration with the actual ports, which differ if the configured port was 0. */
  readonly config: Config
  /** Rejects on a fatal failure, with a message for the operator. `stop` must still be called. */
  readonly stopped: Promise<never>
  /** Reports not ready, lets running requests finish, and closes everything. */
  stop(): Promise<void>
}

/** A program that takes over the terminal until it ends. */
export interface Program {
  /** Its name on PATH. */
  readonly name: string
  readonly args: readonly string[]
  /** Changes to a copy of this process's environment; `undefined` removes a variable. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** What a worker gets from the process that started it. */
interface WorkerStart {
  /** The text of the configuration file, undefined if there is none. @throws SetupError if that process has ended */
  readConfig(): string | undefined
}

/** The dependencies of the command line. `main.ts` provides the real ones. */
export interface CliPorts {
  /** If another process started this one as a worker and announces the service: what that process gave it. */
  readonly worker: WorkerStart | undefined
  readonly clock: Clock
  readonly random: RandomBytes
  /** Whether a store exists. Opening creates a missing one. */
  hasStore(config: Config): boolean
  openStore(config: Config): Promise<OpenedStore>
  startApp(config: Config): Promise<RunningApp>
  /** Encrypts credentials with the configured sealing key. */
  sealer(config: Config): SealCredential
  /** Encrypts other values with it. */
  valueSealer(config: Config): Sealer
  /** Decrypts provider errors, omitting those that can no longer be decrypted. */
  openErrors(config: Config, sealed: readonly SealedProviderError[]): readonly ProviderError[]
  /** Runs a program to its end and resolves to its exit code. @throws SetupError if it is missing or cannot be started */
  runProgram(program: Program): Promise<number>
  /** Copies the database into one file while the service runs. @throws CommandError if that is impossible */
  backup(config: Config, options: BackupOptions): Promise<TakenBackup>
  /** Verifies a backup. @throws CommandError if it cannot be restored */
  inspectBackup(config: Config, options: Pick<RestoreOptions, 'file' | 'trust'>): Promise<CheckedBackup>
  /** Restores a backup into an empty data folder. @throws CommandError if it cannot be restored */
  restore(config: Config, options: RestoreOptions): Promise<RestoredBackup>
  /** Copies all data from one engine to the other. @throws CommandError if nothing was copied */
  moveData(config: Config, to: 'postgres' | 'sqlite'): Promise<MovedData>
  testUpstream(config: Config, upstream: Upstream): Promise<UpstreamTest>
  /** Plans the route of a request from the configuration and stored data, without calling a backend. */
  planRouting(
    config: Config,
    asker: { readonly accountId: string; readonly plan: Plan },
    question: RoutingQuestion,
  ): Promise<RoutingPlan>
  /** Replays request records under another policy, without calling a backend. */
  replay(config: Config, options: ReplayOptions): Promise<ReplayReport>
  /** The models that answer `svc-router/fusion` for an account. Simulated models answer with `voice`. */
  openModels(config: Config, accountId: string, voice: SimulatedVoice): Promise<OpenedModels>
  /** Starts a service of its own for a demo. */
  openDemoService: OpenDemoService
}

/** The terminal: data goes to `out`, messages to `err`, in whole lines. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly colors: boolean
  readonly stdinIsTty: boolean
  out(text: string): void
  err(text: string): void
  /**
   * Reads all of standard input: a credential, or a file of at most `maxFileBytes`. @throws SetupError if it is too
   * large or does not end in time
   */
  readStdin(maxFileBytes?: number): Promise<string>
  /** Calls `run` once when the process receives a stop signal. */
  onStop(run: () => void): void
}

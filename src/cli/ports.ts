import type { SealCredential } from '../accounts/upstreams.ts'
import type { BackendControlStore } from '../accounts/backend-ports.ts'
import type { BillingStore } from '../accounts/billing/ports.ts'
import type {
  AccountStore,
  AuditStore,
  CheckpointMemory,
  IdentityStore,
  ManagedAccessStore,
} from '../accounts/ports.ts'
import type { OperatorStore } from '../accounts/operator-ports.ts'
import type { SupportStore } from '../accounts/support-ports.ts'
import type { StatusStore } from '../accounts/status-ports.ts'
import type { Config } from '../config/config.ts'
import type { Upstream } from '../domain/accounts.ts'
import type { Clock } from '../domain/clock.ts'
import type { Plan } from '../domain/plans.ts'
import type { RandomBytes } from '../domain/random.ts'
import type { RoutePlan, RouteQuestion } from '../domain/route-plan.ts'
import type { ProviderError, SealedProviderError } from '../domain/provider-error.ts'
import type { RefusedCount, RefusedSelection } from '../domain/refused-requests.ts'
import type { RequestRecord } from '../domain/requests.ts'
import type { UpstreamTest } from '../domain/upstream.ts'
import type { OpenedModels } from '../eval/ports.ts'
import type { SimulatedVoice } from '../eval/simulated-world.ts'

/** The records of requests, to be read. */
export interface RequestReader {
  /** What backends said as they failed in a request: those of one account, or with null those of the operator. */
  errorsOf(requestId: string, accountId: string | null): Promise<readonly SealedProviderError[]>
  find(id: string): Promise<RequestRecord | undefined>
  /** Newest first, at most `limit`; of one account or of all. */
  list(limit: number, accountId: string | undefined): Promise<readonly RequestRecord[]>
  /** Requests that were refused and have no record, by account and error. */
  refused(selection: RefusedSelection): Promise<readonly RefusedCount[]>
}

/** The store, open while a command works with it. */
export interface OpenedStore {
  readonly accounts: AccountStore
  readonly audit: AuditStore
  readonly checkpoints: CheckpointMemory
  readonly managed: ManagedAccessStore
  readonly backends: BackendControlStore
  /** Rejects where a write to the quotas is not found again behind a fresh connection. */
  proveQuotas(): Promise<void>
  readonly billing: BillingStore
  readonly requests: RequestReader
  readonly tickets: Pick<SupportStore, 'listTickets' | 'findTicket' | 'closeTicket'>
  readonly incidents: Pick<StatusStore, 'addIncident' | 'addIncidentUpdate' | 'listIncidents'>
  readonly proofs: Pick<IdentityStore, 'addProof'>
  readonly operators: OperatorStore
  close(): Promise<void>
}

/** The running service. */
export interface RunningApp {
  /** Where it really listens: differs from the configuration where that said port 0. */
  readonly config: Config
  /** Rejects when it cannot go on because of a failure, in words for the operator; `stop` is still to be called. */
  readonly stopped: Promise<never>
  /** Ready turns false, running answers finish, everything is closed. */
  stop(): Promise<void>
}

/** Another program that takes over the terminal until it ends. */
export interface Program {
  /** As it is found on PATH. */
  readonly name: string
  readonly args: readonly string[]
  /** Set, or with `undefined` taken away, in a copy of this process's environment. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** What the command line drives; `main.ts` gives the real ones. */
export interface CliPorts {
  readonly clock: Clock
  readonly random: RandomBytes
  /** Whether there is something to open: opening makes what is missing. */
  hasStore(config: Config): boolean
  openStore(config: Config): Promise<OpenedStore>
  startApp(config: Config): Promise<RunningApp>
  /** What seals credentials under the configured sealing key. */
  sealer(config: Config): SealCredential
  /** Opens what backends said; what does not open any more is left out. */
  openErrors(config: Config, sealed: readonly SealedProviderError[]): readonly ProviderError[]
  /** Runs a program to its end and gives its exit code. @throws SetupError where it is not there or cannot be started */
  runProgram(program: Program): Promise<number>
  testUpstream(config: Config, upstream: Upstream): Promise<UpstreamTest>
  /** Where a request would go, by what is configured and kept; nobody is asked. */
  planRoute(
    config: Config,
    asker: { readonly accountId: string; readonly plan: Plan },
    question: RouteQuestion,
  ): Promise<RoutePlan>
  /** The models that answer `svc-router/fusion` for an account; simulated ones say what `voice` says. */
  openModels(config: Config, accountId: string, voice: SimulatedVoice): Promise<OpenedModels>
}

/** Where a command is typed and read: data goes to `out`, talk to `err`. Each is given whole lines. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly colors: boolean
  readonly stdinIsTty: boolean
  out(text: string): void
  err(text: string): void
  /** Everything on standard input. @throws SetupError where it is too much or does not end in time */
  readStdin(): Promise<string>
  /** Calls `run` once when the process is asked to stop. */
  onStop(run: () => void): void
}

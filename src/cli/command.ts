import { resolve } from 'node:path'
import { findAccount, maxListedAccounts } from '../accounts/accounts.ts'
import type { AdminTokensDeps } from '../accounts/admin/admin-tokens.ts'
import type { WebhookDeps } from '../accounts/alerts/webhooks.ts'
import type { BackendControlDeps } from '../accounts/backends/backend-controls.ts'
import type { UpgradesDeps } from '../accounts/billing/billing-deps.ts'
import type { BudgetDeps } from '../accounts/budgets.ts'
import type { AccountsDeps } from '../accounts/control-plane.ts'
import type { DeclaredDeps } from '../accounts/declared/apply.ts'
import { localAccountName } from '../accounts/identity/first-run.ts'
import { createOperatorLink, createSignInLink } from '../accounts/identity/proofs.ts'
import type { ManagedAccessDeps } from '../accounts/managed-access/managed-access.ts'
import type { OperatorsDeps } from '../accounts/operators/operators.ts'
import type { AuditStore } from '../accounts/ports.ts'
import type { IncidentDeps } from '../accounts/status/incidents.ts'
import { withDeclared, type Config } from '../config/config.ts'
import { defaultConfigPath, loadConfig } from '../config/load.ts'
import type { Account } from '../domain/accounts.ts'
import { settingsOf } from '../domain/declared.ts'
import { quoteForShell } from '../runtime/quote-for-shell.ts'
import type { Secret } from '../runtime/secret.ts'
import { readWhole, type CommandLine, type Option } from './command-line.ts'
import { CommandError, exitCodes } from './failures.ts'
import type { CliPorts, OpenedStore, RequestReader } from './ports.ts'
import type { SafeTerminal } from './terminal/safe-terminal.ts'
import type { ValueShape } from './value-shapes.ts'

/** The program name in printed commands. It works in a clone and where the package is installed. */
export const program = 'npx svc-router'

/** One command, with everything that help, dispatch, and suggestions need. */
export interface Command {
  readonly name: string
  readonly summary: string
  /** Names of the arguments, optional ones in brackets. */
  readonly arguments: readonly string[]
  /** The valid values of the arguments, by name. Default: any plain text. */
  readonly shapes?: Readonly<Record<string, ValueShape>>
  /** For a command that passes the arguments after `--` to another program: their name in the help. */
  readonly passesOn?: string
  readonly options: readonly Option[]
  /** Whether it needs the credentials of configured backends, because it sends or plans requests to them. */
  readonly needsCredentials?: true
  readonly example: string
  run(invocation: Invocation): Promise<Result>
}

/** The output of a command: `text` or, with --json, `json` to standard output, and `talk` to standard error. */
export interface Result {
  readonly text: string
  readonly json: unknown
  readonly talk: readonly string[]
  /** One of `exitCodes`, or the exit code of a program that was run. */
  readonly exitCode?: number
}

export const accountOption: Option = {
  name: 'account',
  value: 'ACCOUNT',
  summary: 'The ID or name of the account. Default: the account named "local", or the only one.',
}

/** The services that a command can use while the store is open. */
export interface Workspace {
  readonly config: Config
  readonly accountsDeps: AccountsDeps
  readonly budgets: BudgetDeps
  readonly webhooks: () => WebhookDeps
  readonly audit: AuditStore
  readonly checkpoints: OpenedStore['checkpoints']
  readonly managed: ManagedAccessDeps
  readonly backends: BackendControlDeps
  /** What `apply` and `export` need besides the file. */
  readonly changes: Omit<DeclaredDeps, 'configured' | 'serve'>
  /** Tokens of the admin API. */
  readonly adminTokens: AdminTokensDeps
  readonly proveQuotas: () => Promise<void>
  readonly plans: UpgradesDeps
  readonly requests: RequestReader
  /** Support tickets. */
  readonly tickets: OpenedStore['tickets']
  /** Incidents on the status page. */
  readonly incidents: IncidentDeps & { readonly store: OpenedStore['incidents'] }
  /** What the nodes of the service report; no nodes if it runs on SQLite. */
  readonly health: OpenedStore['health']
  /** Encrypted values. */
  readonly sealed: OpenedStore['sealed']
  /** Creates a link that signs in to an account once, within 15 minutes. */
  readonly signInLink: (accountId: string, appUrl: string) => Promise<Secret>
  /** The operators of the service. */
  readonly operators: OperatorsDeps
  /** Creates a link that signs an operator in to the console once, within 15 minutes. */
  readonly operatorLink: (operatorId: string, appUrl: string) => Promise<Secret>
  /** The selected account: `--account`, or the local one, or the only one. */
  readonly account: () => Promise<Account>
}

/** How a command uses the store. */
interface StoreUse {
  /** What happens if there is no store. */
  readonly none?: 'make' | 'refuse'
  /**
   * `in force`: the configuration includes declared settings. `as stored`: it does not, for commands that can repair
   * settings which no longer fit it.
   */
  readonly settings?: 'in force' | 'as stored'
}

export interface InvocationOptions {
  readonly needsCredentials: boolean
  /** Whether a command, such as `keys rotate ID`, has the option `--account`. */
  readonly takesAccount: (text: string) => boolean
}

/** One invocation of a command. */
export class Invocation {
  readonly line: CommandLine
  readonly terminal: SafeTerminal
  readonly ports: CliPorts
  /** The configuration, once loaded, so that error messages can use its values. */
  config: Config | undefined

  readonly #needsCredentials: boolean
  readonly #takesAccount: (text: string) => boolean

  constructor(
    line: CommandLine,
    terminal: SafeTerminal,
    ports: CliPorts,
    { needsCredentials, takesAccount }: InvocationOptions,
  ) {
    this.#needsCredentials = needsCredentials
    this.#takesAccount = takesAccount
    this.line = line
    this.terminal = terminal
    this.ports = ports
  }

  /** A command that can be pasted, with the same configuration, data folder, and account. */
  command(text: string): string {
    const names = ['config', 'data', ...(this.#takesAccount(text) ? [accountOption.name] : [])]
    const kept = names.flatMap((name) => {
      const value = this.line.option(name)
      return value === undefined ? [] : [`--${name} ${quoteForShell(value)}`]
    })
    return [program, text, ...kept].join(' ')
  }

  /** A required argument. @throws CommandError if it is missing */
  argument(index: number, name: string, example: string): string {
    const value = this.line.positionals[index]
    if (value !== undefined && value !== '') return value
    throw new CommandError(exitCodes.usage, `${name} is missing`, this.command(example))
  }

  /** Loads the configuration. @throws ConfigError with all problems */
  load(localSecrets: 'make' | 'pretend' = 'make'): Config {
    const path = this.line.option('config')
    const { worker } = this.ports
    this.config = loadConfig({
      path: path ?? defaultConfigPath,
      // Giving the default path explicitly still counts as the default, because help and README show it.
      explicit: path !== undefined && resolve(path) !== resolve(defaultConfigPath),
      given: worker && { text: worker.readConfig() },
      overrides: {
        data: this.line.option('data'),
        host: this.line.option('host'),
        port: readWhole(this.line, 'port', 0, 65_535),
        appPort: readWhole(this.line, 'app-port', 0, 65_535),
      },
      env: this.terminal.env,
      random: this.ports.random,
      localSecrets,
      needsCredentials: this.#needsCredentials,
    })
    return this.config
  }

  /**
   * Opens the store, runs `work`, and always closes the store. Only commands that set something up create a missing store;
   * for all others, a folder without a store is probably a typo. @throws CommandError if the store is missing
   */
  async withStore<Value>(
    work: (workspace: Workspace) => Promise<Value>,
    { none = 'refuse', settings = 'in force' }: StoreUse = {},
  ): Promise<Value> {
    const config = none === 'refuse' ? this.loadStored() : this.load()
    const opened = await this.ports.openStore(config)
    try {
      const inForce =
        settings === 'in force' ? withDeclared(config, settingsOf(await opened.changes.listSettings())) : config
      return await work(this.#workspace(inForce, opened))
    } finally {
      await opened.close()
    }
  }

  /** Loads the configuration of an existing store without opening it. @throws CommandError if the store is missing */
  loadStored(): Config {
    this.#assertStore(this.load('pretend'))
    return this.load()
  }

  #assertStore(config: Config): void {
    if (this.ports.hasStore(config)) return
    throw new CommandError(
      exitCodes.config,
      `there is no svc-router data in ${config.dataDir}`,
      `specify another folder with --data FOLDER, or set this one up: ${this.command('start')}`,
    )
  }

  #workspace(config: Config, opened: OpenedStore): Workspace {
    const deps: AccountsDeps = {
      store: opened.accounts,
      clock: this.ports.clock,
      random: this.ports.random,
      pepper: config.secrets.pepper,
      actor: { kind: 'cli' },
    }
    const plans: UpgradesDeps = {
      accounts: opened.accounts,
      store: opened.billing,
      actor: deps.actor,
      clock: this.ports.clock,
      random: this.ports.random,
      plans: config.plans,
      defaultPlan: config.defaultPlan,
      graceMs: config.billing?.graceMs ?? 0,
    }
    const { audit, checkpoints, requests } = opened
    const proveQuotas = (): Promise<void> => opened.proveQuotas()
    const { random, clock, pepper } = deps
    const proofs = { store: opened.proofs, random, clock, pepper }
    return {
      config,
      accountsDeps: deps,
      budgets: { ...deps, store: opened.budgets },
      webhooks: () => ({
        ...deps,
        store: opened.webhooks,
        sealer: this.ports.valueSealer(config),
        requiresHttps: config.mode === 'production',
        webhooksUrl: `${config.appUrl}/account/webhooks`,
      }),
      plans,
      audit,
      checkpoints,
      managed: { ...deps, store: opened.managed },
      backends: { ...deps, store: opened.backends },
      changes: { ...deps, store: opened.changes, transactions: opened.transactions },
      adminTokens: { ...deps, store: opened.adminTokens },
      proveQuotas,
      requests,
      tickets: opened.tickets,
      health: () => opened.health(),
      sealed: opened.sealed,
      incidents: { ...deps, store: opened.incidents },
      signInLink: (accountId, appUrl) => createSignInLink(proofs, accountId, appUrl),
      operators: { ...deps, store: opened.operators },
      operatorLink: (operatorId, appUrl) => createOperatorLink(proofs, operatorId, appUrl),
      account: () => this.#account(deps),
    }
  }

  async #account(deps: AccountsDeps): Promise<Account> {
    const named = this.line.option('account')
    if (named !== undefined) return findAccount(deps, named)
    const accounts = await deps.store.listAccounts(maxListedAccounts)
    const account =
      accounts.find(({ name }) => name === localAccountName) ?? (accounts.length === 1 ? accounts[0] : undefined)
    if (account !== undefined) return account
    if (accounts.length === 0)
      throw new CommandError(exitCodes.failure, 'there is no account yet', this.command('accounts create NAME'))
    throw new CommandError(
      exitCodes.usage,
      'there are several accounts: choose one',
      `--account NAME; see the accounts: ${this.command('accounts list')}`,
    )
  }
}

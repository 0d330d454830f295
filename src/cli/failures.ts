import { AccountsError, maxNameCharacters, type AccountsErrorCode } from '../accounts/accounts-error.ts'
import { maxListedAccounts } from '../accounts/accounts.ts'
import { maxAdminTokens, maxTokenDays } from '../accounts/admin/admin-tokens.ts'
import { maxWebhooksPerAccount } from '../accounts/alerts/webhooks.ts'
import { maxNetworks } from '../accounts/key-limits.ts'
import { maxKeysPerAccount } from '../accounts/keys.ts'
import { maxUpstreamsPerAccount } from '../accounts/upstreams.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/problems.ts'
import { BackupError } from '../domain/backup-error.ts'
import { maxBudgetsPerSetter } from '../domain/budgets.ts'
import { isInFolder } from '../runtime/is-in-folder.ts'
import { SetupError } from '../runtime/setup-error.ts'
import { sqliteCodes, sqliteDiskCodes, sqliteResultCode } from '../runtime/sqlite-result-code.ts'

/**
 * Exit codes, so that scripts can tell failures apart. `unproven`: nothing is wrong, but it could not be proven (contract
 * 33.2). `different`: apply would change something.
 */
export const exitCodes = {
  ok: 0,
  failure: 1,
  usage: 2,
  config: 3,
  auth: 4,
  unreachable: 5,
  unproven: 6,
  different: 7,
} as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** An expected failure of a command: one sentence, and the fix, usually the next command. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: ExitCode
  readonly fix: string
  /** Other problems that were found at the same time. */
  readonly others: readonly { readonly what: string; readonly fix: string }[]

  constructor(exitCode: ExitCode, what: string, fix: string, others: CommandError['others'] = []) {
    super(what)
    this.others = others
    this.exitCode = exitCode
    this.fix = fix
  }
}

/** A failure as it is printed. */
export interface CommandFailure {
  readonly what: string
  readonly fix: string
  readonly exitCode: ExitCode
  readonly others?: CommandError['others']
}

type RefusedChanges = Readonly<Record<AccountsErrorCode, readonly [what: string, fix: string]>>

/** What each refused change prints. `{accounts list}` stands for that command as the user types it. */
const refusedChanges: RefusedChanges = {
  name_invalid: [`a name must have 1 to ${maxNameCharacters} visible characters`, 'choose another name'],
  account_unknown: ['there is no such account', 'see the accounts: {accounts list}'],
  account_name_taken: ['an account with that name already exists', 'see the accounts: {accounts list}'],
  account_limit: [`there are ${maxListedAccounts} accounts, the maximum`, 'see the accounts: {accounts list}'],
  account_name_mismatch: ['that is not the name of the account', 'see it: {accounts list}'],
  plan_unknown: ['there is no such plan', 'see the plans: {check}'],
  key_unknown: ['there is no such key', 'see the keys: {keys list}'],
  key_limit: [`the account has ${maxKeysPerAccount} keys, the maximum`, 'revoke one first: {keys list}'],
  key_not_active: ['only an active key can be rotated', 'create a new one: {keys create}'],
  profiles_invalid: ['a key can only be limited to profiles that exist', 'see the profiles: {check}'],
  per_minute_invalid: [
    "the key's limit must be a whole number from 1 to the plan's requests per minute",
    'see the limits of the plans: {check}',
  ],
  addresses_invalid: [
    `a key can have 1 to ${maxNetworks} IPv4 or IPv6 addresses or networks`,
    'for example --address 203.0.113.7 --address 2001:db8::/32',
  ],
  key_already_revoked: ['this key is already revoked', 'see the keys: {keys list}'],
  budget_invalid: [
    'a budget must apply to the account, one of its keys, or an existing profile, and its limit must be 0.01 to 1,000,000 USD or 1,000 to 1,000,000,000,000 tokens',
    'for example --usd 20; see the profiles: {check}',
  ],
  budget_limit: [
    `the maximum is reached: an account can set ${maxBudgetsPerSetter} budgets for itself, and operators can set ${maxBudgetsPerSetter} for it`,
    'remove one first: {budgets list}',
  ],
  budget_unknown: ['the account has no such budget', 'see the budgets: {budgets list}'],
  webhook_url_invalid: [
    'the URL of a webhook must begin with https:// (or in local mode with http://), contain no user name, password, or fragment, and have at most 1,000 characters',
    'for example https://hooks.example.com/svc-router',
  ],
  webhook_limit: [
    `the account has ${maxWebhooksPerAccount} webhooks, the maximum`,
    'remove one first: {webhooks list}',
  ],
  webhook_unknown: ['the account has no such webhook', 'see the webhooks: {webhooks list}'],
  webhook_busy: ['too many messages to webhooks of the account are waiting', 'see why they fail: {webhooks list}'],
  upstream_unknown: ['the account has no such provider', 'see the providers: {upstream list}'],
  upstream_limit: [
    `the account has ${maxUpstreamsPerAccount} providers, the maximum`,
    'remove one first: {upstream list}',
  ],
  account_already_suspended: ['the account is already suspended', 'see it: {accounts list}'],
  account_not_suspended: ['the account is not suspended', 'see it: {accounts list}'],
  operator_only: ['only an operator can do that', 'ask the operator of this service'],
  managed_unchanged: ['managed access is already in that state', 'see it: {managed-access status}'],
  note_invalid: [
    'the note must have 1 to 40 letters, digits, ".", "_", or "-", and must not be a credential',
    'use the ID of the agreement: --note CONTRACT-17',
  ],
  provider_invalid: ['a provider name must have 1 to 64 letters, digits, ".", "_", or "-"', 'see the names: {check}'],
  resale_already_recorded: [
    'a resale agreement with that provider is already recorded',
    'see the agreements: {managed-access status}',
  ],
  resale_unknown: ['no resale agreement with that provider is recorded', 'see the agreements: {managed-access status}'],
  managed_request_open: [
    'the account already has a request for managed access, or has reached the maximum number of them',
    'see the requests: {managed-access requests}',
  ],
  managed_request_unknown: ['there is no such request', 'see the requests: {managed-access requests}'],
  managed_request_decided: [
    'the current state of the request does not allow this',
    'see it: {managed-access requests}',
  ],
  incident_invalid: [
    'the title or the text of the incident is empty or too long',
    'see the arguments: {help incidents open}',
  ],
  incident_unknown: ['there is no such incident', 'see the incidents: {incidents list}'],
  token_unknown: ['there is no active token with that ID', 'see the tokens: {admin-tokens list}'],
  token_limit: [`there are ${maxAdminTokens} tokens, the maximum`, 'revoke one first: {admin-tokens list}'],
  token_days_invalid: [`a token works for 1 to ${maxTokenDays} days`, 'choose another number of days'],
  setting_unknown: ['there is no declared setting with that name', 'see the declared settings: {export}'],
  backend_invalid: ['that is not a valid backend name', 'see the backends: {backends list}'],
  backend_unchanged: ['the backend is already in that state', 'see it: {backends list}'],
  ticket_unknown: ['there is no such ticket', 'see the tickets: {tickets list}'],
  ticket_unchanged: ['the ticket is already in that state', 'see it: {tickets list}'],
  credential_invalid: [
    'the credential is empty, too long, or contains invalid characters',
    'enter it on one line, without quotes',
  ],
  plan_not_sold: ['this plan is not for sale', 'see the plans: {check}'],
  plan_same: ['the account is already on this plan', 'see it: {accounts list}'],
  not_subscribed: ['the account does not have a paid plan', 'see it: {accounts list}'],
  upgrade_unknown: ['there is no such upgrade request', 'see the requests: {upgrades list}'],
  upgrade_open: ['the account already has an open upgrade request', 'see it: {upgrades list}'],
  email_invalid: ['that is not an email address', 'use the form name@example.com'],
  operator_unknown: ['there is no such operator', 'see the operators: {operators list}'],
  operator_exists: ['an operator with this address already exists', 'see the operators: {operators list}'],
  operator_limit: ['the maximum number of operators is reached', 'remove one first: {operators list}'],
  operator_same_role: ['the operator already has that role', 'see the operators: {operators list}'],
  operator_last_admin: ['this is the only admin', 'add another one first: {operators create EMAIL --role admin}'],
  operator_self: ['operators cannot change or remove themselves', 'ask another admin to do it'],
  upgrade_decided: ['this upgrade request was already decided or withdrawn', 'see all requests: {upgrades list --all}'],
}

const folderCodes = ['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT', 'ENOTDIR', 'EEXIST', 'EISDIR']
const permissionCodes = ['EACCES', 'EPERM']
const sqliteInUse: readonly unknown[] = [sqliteCodes.busy, sqliteCodes.locked]
const sqliteDamaged: readonly unknown[] = [sqliteCodes.corrupt, sqliteCodes.notADatabase]

/** Describes an expected failure; undefined for a bug. */
export function explain(
  error: unknown,
  config: Config | undefined,
  command: (text: string) => string,
): CommandFailure | undefined {
  if (error instanceof CommandError) {
    const { message: what, fix, exitCode, others } = error
    return { what, fix, exitCode, others }
  }
  if (error instanceof BackupError) return { what: error.message, fix: error.fix, exitCode: exitCodes.failure }
  if (error instanceof SetupError) return { what: error.message, fix: error.fix, exitCode: exitCodes.config }
  if (error instanceof AccountsError) {
    const [what, given] = refusedChanges[error.code]
    const fix = given.replace(/\{([^{}]+)\}/, (_, text: string) => command(text))
    return { what, fix, exitCode: exitCodes.failure }
  }
  if (error instanceof ConfigError || !(error instanceof Error)) return undefined
  const explained = explainSystem(error, config)
  return explained === undefined ? undefined : { ...explained, exitCode: exitCodes.config }
}

function explainSystem(error: Error, config: Config | undefined): { what: string; fix: string } | undefined {
  const { code } = error as { code?: unknown }
  const folder = config === undefined ? 'the data folder' : `the data folder ${config.dataDir}`
  const explained = explainListening(error, config)
  if (explained !== undefined) return explained
  const sqliteCode = sqliteResultCode(error)
  if (sqliteInUse.includes(sqliteCode))
    return {
      what: `${folder} is in use by another process`,
      fix: 'stop that process, or choose another folder: --data FOLDER',
    }
  if (sqliteDamaged.includes(sqliteCode))
    return {
      what: `the database in ${folder} is damaged`,
      fix: 'restore it from a backup, or choose another folder: --data FOLDER',
    }
  const file = fileElsewhere(error, config)
  if (file !== undefined && typeof code === 'string' && folderCodes.includes(code))
    return {
      what: `${file} cannot be opened: ${permissionCodes.includes(code) ? 'permission denied' : code}`,
      fix: 'check the owner and the permissions of the file and of its folder',
    }
  if (sqliteDiskCodes.includes(sqliteCode) || (typeof code === 'string' && folderCodes.includes(code))) {
    return {
      what: `${folder} is not writable`,
      fix: 'check its permissions and free disk space, or choose another folder: --data FOLDER',
    }
  }
  return undefined
}

/** The file that an error of the system names, unless it is in the data folder or one of the folders above. */
function fileElsewhere(error: Error, config: Config | undefined): string | undefined {
  const { path } = error as { path?: unknown }
  if (config === undefined || typeof path !== 'string') return undefined
  const { dataDir } = config
  return isInFolder(path, dataDir) || isInFolder(dataDir, path) ? undefined : path
}

/** Describes why the API or the web app cannot listen on its port. */
function explainListening(error: Error, config: Config | undefined): { what: string; fix: string } | undefined {
  const { code, syscall, port: failed } = error as { code?: unknown; syscall?: unknown; port?: unknown }
  const isApp = config !== undefined && failed === config.appListen.port
  const { host, port } = (isApp ? config.appListen : config?.listen) ?? { host: 'this host', port: 0 }
  const option = isApp ? '--app-port' : '--port'
  if (code === 'EADDRINUSE')
    return {
      what: `port ${port} on ${host} is in use by another program`,
      fix: `stop that program, or choose another port: ${option} ${port + 10}`,
    }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return { what: `this machine cannot listen on ${host}`, fix: 'choose another address: --host 127.0.0.1' }
  if (code === 'EACCES' && syscall === 'listen')
    return {
      what: `this user does not have permission to listen on port ${port}`,
      fix: `choose a port above 1023: ${option} ${isApp ? 8788 : 8787}`,
    }
  return undefined
}

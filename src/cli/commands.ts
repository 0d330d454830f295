import type { Command } from './command.ts'
import { accountsCreate, accountsList, accountsPlan, accountsResume, accountsSuspend } from './commands/accounts.ts'
import { adminTokensCreate, adminTokensList, adminTokensRevoke } from './commands/admin-tokens.ts'
import { apply, diff, exportFile } from './commands/apply.ts'
import { auditCheckpoint, auditExport, auditList, auditVerify } from './commands/audit.ts'
import {
  backendsDrain,
  backendsQuarantine,
  backendsRelease,
  backendsUndrain,
  backendsList,
} from './commands/backends.ts'
import { backup, restore } from './commands/backup.ts'
import { budgetsList, budgetsRemove, budgetsSet } from './commands/budgets.ts'
import { check } from './commands/check.ts'
import { connect } from './commands/connect.ts'
import { databaseToPostgres, databaseToSqlite } from './commands/database.ts'
import { demo } from './commands/demo.ts'
import { doctor } from './commands/doctor.ts'
import { evalFusion } from './commands/eval.ts'
import { explain } from './commands/explain.ts'
import { incidentsList, incidentsOpen, incidentsUpdate } from './commands/incidents.ts'
import { keysCreate, keysLimit, keysList, keysRevoke, keysRotate } from './commands/keys.ts'
import {
  managedAccessApprove,
  managedAccessReject,
  managedAccessOff,
  managedAccessOn,
  managedAccessRequests,
  managedAccessResale,
  managedAccessStatus,
} from './commands/managed-access.ts'
import {
  operatorsCreate,
  operatorsList,
  operatorsRemove,
  operatorsRole,
  operatorsSignInLink,
} from './commands/operators.ts'
import { profilesDryRun } from './commands/profiles.ts'
import { replay } from './commands/replay.ts'
import { request } from './commands/request.ts'
import { requests } from './commands/requests.ts'
import { runAgent } from './commands/run-agent.ts'
import { secretsReseal, secretsStatus } from './commands/secrets.ts'
import { signInLink } from './commands/sign-in-link.ts'
import { start } from './commands/start.ts'
import { status } from './commands/status.ts'
import { ticketsList, ticketsClose, ticketsReopen } from './commands/tickets.ts'
import { upgradesApprove, upgradesList, upgradesReject } from './commands/upgrades.ts'
import { upstreamAdd, upstreamList, upstreamRemove, upstreamTest } from './commands/upstream.ts'
import { version } from './commands/version.ts'
import { webhooksAdd, webhooksList, webhooksRemove, webhooksRotate, webhooksTest } from './commands/webhooks.ts'

/** Every command, in the order of the help (contract 33.1). */
export const commands: readonly Command[] = [
  start,
  status,
  demo,
  check,
  connect,
  runAgent,
  doctor,
  keysCreate,
  keysList,
  keysLimit,
  keysRotate,
  keysRevoke,
  budgetsSet,
  budgetsList,
  budgetsRemove,
  webhooksAdd,
  webhooksList,
  webhooksTest,
  webhooksRotate,
  webhooksRemove,
  signInLink,
  accountsCreate,
  accountsList,
  accountsPlan,
  accountsSuspend,
  accountsResume,
  apply,
  diff,
  exportFile,
  upgradesList,
  upgradesApprove,
  upgradesReject,
  upstreamAdd,
  upstreamTest,
  upstreamList,
  upstreamRemove,
  request,
  requests,
  replay,
  evalFusion,
  operatorsCreate,
  operatorsSignInLink,
  operatorsList,
  operatorsRole,
  operatorsRemove,
  adminTokensCreate,
  adminTokensList,
  adminTokensRevoke,
  auditList,
  auditVerify,
  auditExport,
  auditCheckpoint,
  backendsList,
  backendsDrain,
  backendsUndrain,
  backendsQuarantine,
  backendsRelease,
  profilesDryRun,
  explain,
  backup,
  restore,
  databaseToPostgres,
  databaseToSqlite,
  secretsStatus,
  secretsReseal,
  managedAccessStatus,
  managedAccessOn,
  managedAccessOff,
  managedAccessResale,
  managedAccessRequests,
  managedAccessApprove,
  managedAccessReject,
  incidentsOpen,
  incidentsUpdate,
  incidentsList,
  ticketsList,
  ticketsClose,
  ticketsReopen,
  version,
]

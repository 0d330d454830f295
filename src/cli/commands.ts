import { accountsCreate } from './commands/accounts-create.ts'
import { accountsList } from './commands/accounts-list.ts'
import { accountsPlan } from './commands/accounts-plan.ts'
import { accountsResume, accountsSuspend } from './commands/accounts-suspend.ts'
import { auditCheckpoint } from './commands/audit-checkpoint.ts'
import { auditExport } from './commands/audit-export.ts'
import { auditList } from './commands/audit-list.ts'
import { auditVerify } from './commands/audit-verify.ts'
import { backendsDrain, backendsQuarantine, backendsRelease, backendsUndrain } from './commands/backends-control.ts'
import { backendsList } from './commands/backends-list.ts'
import { check } from './commands/check.ts'
import type { Command } from './command.ts'
import { connect } from './commands/connect.ts'
import { doctor } from './commands/doctor.ts'
import { evalFusion } from './commands/eval.ts'
import { incidentsList } from './commands/incidents-list.ts'
import { incidentsOpen } from './commands/incidents-open.ts'
import { incidentsUpdate } from './commands/incidents-update.ts'
import { keysCreate } from './commands/keys-create.ts'
import { keysLimit } from './commands/keys-limit.ts'
import { keysList } from './commands/keys-list.ts'
import { keysRevoke } from './commands/keys-revoke.ts'
import { keysRotate } from './commands/keys-rotate.ts'
import { managedAccessApprove, managedAccessReject } from './commands/managed-access-review.ts'
import { managedAccessOff, managedAccessOn } from './commands/managed-access-switch.ts'
import { managedAccessRequests } from './commands/managed-access-requests.ts'
import { managedAccessResale } from './commands/managed-access-resale.ts'
import { managedAccessStatus } from './commands/managed-access-status.ts'
import { operatorsCreate } from './commands/operators-create.ts'
import { operatorsList } from './commands/operators-list.ts'
import { operatorsRemove } from './commands/operators-remove.ts'
import { operatorsRole } from './commands/operators-role.ts'
import { operatorsSignInLink } from './commands/operators-sign-in-link.ts'
import { profilesDryRun } from './commands/profiles-dry-run.ts'
import { request } from './commands/request.ts'
import { requests } from './commands/requests.ts'
import { runAgent } from './commands/run-agent.ts'
import { signInLink } from './commands/sign-in-link.ts'
import { start } from './commands/start.ts'
import { upgradesApprove } from './commands/upgrades-approve.ts'
import { upgradesList } from './commands/upgrades-list.ts'
import { upgradesReject } from './commands/upgrades-reject.ts'
import { ticketsList } from './commands/tickets-list.ts'
import { ticketsClose, ticketsReopen } from './commands/tickets-mark.ts'
import { upstreamAdd } from './commands/upstream-add.ts'
import { upstreamList } from './commands/upstream-list.ts'
import { upstreamRemove } from './commands/upstream-remove.ts'
import { upstreamTest } from './commands/upstream-test.ts'
import { version } from './commands/version.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [
  start,
  check,
  connect,
  runAgent,
  doctor,
  keysCreate,
  keysList,
  keysLimit,
  keysRotate,
  keysRevoke,
  signInLink,
  accountsCreate,
  accountsList,
  accountsPlan,
  accountsSuspend,
  accountsResume,
  upgradesList,
  upgradesApprove,
  upgradesReject,
  upstreamAdd,
  upstreamTest,
  upstreamList,
  upstreamRemove,
  request,
  requests,
  evalFusion,
  operatorsCreate,
  operatorsSignInLink,
  operatorsList,
  operatorsRole,
  operatorsRemove,
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

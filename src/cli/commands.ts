import { accountsCreate } from './accounts-create.ts'
import { accountsList } from './accounts-list.ts'
import { accountsPlan } from './accounts-plan.ts'
import { accountsResume, accountsSuspend } from './accounts-suspend.ts'
import { auditCheckpoint } from './audit-checkpoint.ts'
import { auditExport } from './audit-export.ts'
import { auditList } from './audit-list.ts'
import { auditVerify } from './audit-verify.ts'
import { backendsDrain, backendsQuarantine, backendsRelease, backendsUndrain } from './backends-control.ts'
import { backendsList } from './backends-list.ts'
import { check } from './check.ts'
import type { Command } from './command.ts'
import { connect } from './connect.ts'
import { doctor } from './doctor.ts'
import { evalFusion } from './eval.ts'
import { incidentsList } from './incidents-list.ts'
import { incidentsOpen } from './incidents-open.ts'
import { incidentsUpdate } from './incidents-update.ts'
import { keysCreate } from './keys-create.ts'
import { keysLimit } from './keys-limit.ts'
import { keysList } from './keys-list.ts'
import { keysRevoke } from './keys-revoke.ts'
import { keysRotate } from './keys-rotate.ts'
import { managedAccessApprove, managedAccessReject } from './managed-access-review.ts'
import { managedAccessOff, managedAccessOn } from './managed-access-switch.ts'
import { managedAccessRequests } from './managed-access-requests.ts'
import { managedAccessResale } from './managed-access-resale.ts'
import { managedAccessStatus } from './managed-access-status.ts'
import { operatorsCreate } from './operators-create.ts'
import { operatorsList } from './operators-list.ts'
import { operatorsRemove } from './operators-remove.ts'
import { operatorsRole } from './operators-role.ts'
import { operatorsSignInLink } from './operators-sign-in-link.ts'
import { profilesDryRun } from './profiles-dry-run.ts'
import { request } from './request.ts'
import { requests } from './requests.ts'
import { runAgent } from './run-agent.ts'
import { signInLink } from './sign-in-link.ts'
import { start } from './start.ts'
import { upgradesApprove } from './upgrades-approve.ts'
import { upgradesList } from './upgrades-list.ts'
import { upgradesReject } from './upgrades-reject.ts'
import { ticketsList } from './tickets-list.ts'
import { ticketsClose, ticketsReopen } from './tickets-mark.ts'
import { upstreamAdd } from './upstream-add.ts'
import { upstreamList } from './upstream-list.ts'
import { upstreamRemove } from './upstream-remove.ts'
import { upstreamTest } from './upstream-test.ts'
import { version } from './version.ts'

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

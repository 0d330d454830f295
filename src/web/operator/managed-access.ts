import { html } from 'hono/html'
import { AccountsError, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import {
  maxListedRequests,
  recordResale,
  reviewManagedRequest,
  revokeResale,
  switchManagedAccess,
  type ManagedAccessDeps,
} from '../../accounts/managed-access/managed-access.ts'
import { isManagedOn, managedRequestStates } from '../../domain/managed-access.ts'
import { operatorActions } from '../../domain/operators.ts'
import { withNotice, type Notice } from '../components/notices.ts'
import { operatorAccountsDepsFor } from '../http/control.ts'
import { PageError } from '../http/page-error.ts'
import { redirect } from '../http/redirect.ts'
import type { OperatorRoute, PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { consolePage } from './console-page.ts'
import { agreements, checks, history, queue } from './managed-cards.ts'
import { operatorEmails } from './operator-emails.ts'

const path = '/operator/managed-access'
const { see, switchManagedAccess: maySwitch, recordResale: mayRecord, reviewManagedAccess } = operatorActions

/**
 * Managed access, which lets accounts use the operator's credentials (contract 23.3): requests, the switch, and the
 * checks.
 */
export const managedRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...see, handle: (visit) => show(visit) },
  deciding('/on', maySwitch, 'managed-on', (managedDeps) => switchManagedAccess(managedDeps, true)),
  deciding('/off', maySwitch, 'managed-off', (managedDeps) => switchManagedAccess(managedDeps, false)),
  deciding('/resale/:provider', mayRecord, 'resale-recorded', (managedDeps, visit) =>
    recordResale(managedDeps, configured(visit), visit.form.text('note')),
  ),
  deciding('/resale/:provider/revoke', mayRecord, 'resale-revoked', takeBack),
  deciding('/:managedId/approve', reviewManagedAccess, 'managed-approved', (managedDeps, { params }) =>
    reviewManagedRequest(managedDeps, params['managedId'] ?? '', 'approved'),
  ),
  deciding('/:managedId/reject', reviewManagedAccess, 'managed-rejected', (managedDeps, { params }) =>
    reviewManagedRequest(managedDeps, params['managedId'] ?? '', 'rejected'),
  ),
]

/** Check results can be a few seconds old, and a failed check closes managed access for ten seconds. */
const opensSoon = 'All checks pass, so it turns on within a second, or ten seconds after the last failed check.'

/** Errors that the page explains. */
const problems: Partial<Record<AccountsErrorCode, string>> = {
  managed_unchanged: 'The switch is already in this state.',
  note_invalid: 'Enter 1 to 40 letters, digits, ".", "_" or "-": the ID of a contract or ticket, not a credential.',
  resale_already_recorded: 'An agreement with that provider is already recorded.',
  resale_unknown: 'No agreement with that provider is recorded.',
  managed_request_decided: 'That request is no longer in a state that allows this. Someone else may have decided it.',
}

function deciding(
  where: string,
  needs: Pick<OperatorRoute, 'role' | 'stepUp'>,
  done: Notice,
  decide: (deps: ManagedAccessDeps, visit: OperatorVisit) => Promise<unknown>,
): OperatorRoute {
  return {
    method: 'POST',
    path: `${path}${where}`,
    access: 'operator',
    ...needs,
    async handle(visit) {
      try {
        await decide({ ...operatorAccountsDepsFor(visit), store: visit.deps.managed.store }, visit)
      } catch (error) {
        if (!(error instanceof AccountsError)) throw error
        if (error.code === 'managed_request_unknown' || error.code === 'provider_invalid')
          throw new PageError('not_found')
        const problem = problems[error.code]
        if (problem === undefined) throw error
        return show(visit, problem)
      }
      return redirect(withNotice(path, done))
    },
  }
}

/** An agreement can be revoked even if its provider is no longer configured. */
async function takeBack(deps: ManagedAccessDeps, visit: OperatorVisit): Promise<void> {
  const provider = visit.params['provider'] ?? ''
  const { controls } = await deps.store.managedAccess()
  await revokeResale(deps, controls.some((control) => control.provider === provider) ? provider : configured(visit))
}

/** The provider in the path. @throws PageError if it is not configured */
function configured({ deps, params }: OperatorVisit): string {
  const provider = params['provider'] ?? ''
  if (!deps.consoleDeps.backends.some((backend) => backend.provider === provider)) throw new PageError('not_found')
  return provider
}

async function show(visit: OperatorVisit, problem?: string): Promise<Response> {
  const { managed, consoleDeps } = visit.deps
  const [readiness, state, emails, ...ofStates] = await Promise.all([
    managed.readiness(),
    managed.store.managedAccess(),
    operatorEmails(visit.deps),
    // Read each state separately, so that many requests of one kind cannot push out the others.
    ...managedRequestStates.map((one) => managed.store.listManagedRequests({ limit: maxListedRequests, state: one })),
  ])
  const requests = ofStates.flat()
  const isManaged = (provider: string): boolean =>
    consoleDeps.backends.some((backend) => backend.provider === provider && backend.serves === 'managed')
  const providers = [...new Set(consoleDeps.backends.map(({ provider }) => provider))].filter(isManaged)
  // Current values override the check results, so that a change made just now is visible.
  const now = {
    ...readiness,
    switchedOn: state.switchedOn,
    providers: state.controls.filter(({ revokedAtMs }) => revokedAtMs === null).map(({ provider }) => provider),
  }
  const ready = providers.filter((provider) => isManagedOn(now, provider))
  const serving = ready.filter((provider) => consoleDeps.servesManaged(provider))
  return consolePage(visit, {
    title: 'Managed access',
    lead:
      providers.length === 0
        ? 'No configured backend is managed, so managed access serves no one regardless of these settings.'
        : serving.length === 0
          ? `Managed access is off: no account uses your credentials. ${ready.length === 0 ? '' : opensSoon}`
          : `Managed access is on for ${serving.join(', ')}.`,
    status: problem === undefined ? 200 : 422,
    problem,
    body: html`${queue(visit, requests)} ${checks(visit, now)} ${agreements(visit, providers, state.controls, emails)}
    ${history(visit, requests)}`,
  })
}

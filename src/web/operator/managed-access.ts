import { html } from 'hono/html'
import {
  maxListedRequests,
  recordResale,
  reviewManagedRequest,
  revokeResale,
  switchManagedAccess,
  type ManagedPlane,
} from '../../accounts/managed-access.ts'
import { AccountsError, type AccountsRefusal } from '../../accounts/refusals.ts'
import { isManagedOn, managedRequestStates } from '../../domain/managed-access.ts'
import { operatorActions } from '../../domain/operators.ts'
import { operatorControlOf } from '../control.ts'
import { withNotice, type Notice } from '../notices.ts'
import { redirect } from '../redirect.ts'
import { PageRefusal } from '../refusals.ts'
import type { OperatorRoute, Route } from '../route.ts'
import type { OperatorVisit } from '../visit.ts'
import { consolePage } from './console-page.ts'
import { agreements, checks, history, queue } from './managed-cards.ts'
import { operatorEmails } from './operator-emails.ts'

const path = '/operator/managed-access'
const { see, switchManagedAccess: maySwitch, recordResale: mayRecord, reviewManagedAccess } = operatorActions

/** Whom the operator's own credentials may serve (contract 23.3): the queue, the switch, the three checks. */
export const managedRoutes: readonly Route[] = [
  { method: 'GET', path, access: 'operator', ...see, handle: (visit) => show(visit) },
  deciding('/on', maySwitch, 'managed-on', (plane) => switchManagedAccess(plane, true)),
  deciding('/off', maySwitch, 'managed-off', (plane) => switchManagedAccess(plane, false)),
  deciding('/resale/:provider', mayRecord, 'resale-recorded', (plane, visit) =>
    recordResale(plane, configured(visit), visit.form.text('note')),
  ),
  deciding('/resale/:provider/revoke', mayRecord, 'resale-revoked', takeBack),
  deciding('/:managedId/approve', reviewManagedAccess, 'managed-approved', (plane, { params }) =>
    reviewManagedRequest(plane, params['managedId'] ?? '', 'approved'),
  ),
  deciding('/:managedId/reject', reviewManagedAccess, 'managed-rejected', (plane, { params }) =>
    reviewManagedRequest(plane, params['managedId'] ?? '', 'rejected'),
  ),
]

/** What was found some seconds ago may hold no more, and a check that has failed shuts it for ten. */
const opensSoon = 'It opens within a second, or once every check has held for ten.'

/** Refusals that the page itself explains. */
const problems: Partial<Record<AccountsRefusal, string>> = {
  managed_stands_so: 'The switch stands so already.',
  note_invalid: 'The note has 1 to 40 letters, digits, ".", "_" or "-": a contract or ticket, and no credential.',
  resale_recorded_before: 'An agreement of that provider is recorded already.',
  resale_unknown: 'No agreement of that provider is recorded.',
  managed_request_decided: 'That request does not stand where this can be done. Somebody else may have decided it.',
}

function deciding(
  where: string,
  needs: Pick<OperatorRoute, 'role' | 'stepUp'>,
  done: Notice,
  decide: (plane: ManagedPlane, visit: OperatorVisit) => Promise<unknown>,
): OperatorRoute {
  return {
    method: 'POST',
    path: `${path}${where}`,
    access: 'operator',
    ...needs,
    async handle(visit) {
      try {
        await decide({ ...operatorControlOf(visit), store: visit.parts.managed.store }, visit)
      } catch (error) {
        if (!(error instanceof AccountsError)) throw error
        if (error.code === 'managed_request_unknown' || error.code === 'provider_invalid')
          throw new PageRefusal('not_found')
        const problem = problems[error.code]
        if (problem === undefined) throw error
        return show(visit, problem)
      }
      return redirect(withNotice(path, done))
    },
  }
}

/** An agreement can be taken back also where the configuration has dropped its provider. */
async function takeBack(plane: ManagedPlane, visit: OperatorVisit): Promise<void> {
  const provider = visit.params['provider'] ?? ''
  const { controls } = await plane.store.managedAccess()
  await revokeResale(plane, controls.some((control) => control.provider === provider) ? provider : configured(visit))
}

/** The provider that the path names. @throws PageRefusal where the configuration has none of that name */
function configured({ parts, params }: OperatorVisit): string {
  const provider = params['provider'] ?? ''
  if (!parts.desk.backends.some((backend) => backend.provider === provider)) throw new PageRefusal('not_found')
  return provider
}

async function show(visit: OperatorVisit, problem?: string): Promise<Response> {
  const { managed, desk } = visit.parts
  const [readiness, state, emails, ...ofStates] = await Promise.all([
    managed.readiness(),
    managed.store.managedAccess(),
    operatorEmails(visit.parts),
    // Each state by itself: those who ask again and again push nobody out of sight.
    ...managedRequestStates.map((one) => managed.store.listManagedRequests({ limit: maxListedRequests, state: one })),
  ])
  const requests = ofStates.flat()
  const isManaged = (provider: string): boolean =>
    desk.backends.some((backend) => backend.provider === provider && backend.serves === 'managed')
  const providers = [...new Set(desk.backends.map(({ provider }) => provider))].filter(isManaged)
  // What is read now goes before what was checked some seconds ago: a switch just moved is seen as moved.
  const now = {
    ...readiness,
    switchedOn: state.switchedOn,
    providers: state.controls.filter(({ revokedAtMs }) => revokedAtMs === null).map(({ provider }) => provider),
  }
  const ready = providers.filter((provider) => isManagedOn(now, provider))
  const serving = ready.filter((provider) => desk.servesManaged(provider))
  return consolePage(visit, {
    title: 'Managed access',
    lead:
      providers.length === 0
        ? 'No backend of the configuration is managed, so it serves nobody, whatever is decided here.'
        : serving.length === 0
          ? `It is off: nobody is served through your credentials. ${ready.length === 0 ? '' : opensSoon}`
          : `It is on for ${serving.join(', ')}.`,
    status: problem === undefined ? 200 : 422,
    problem,
    body: html`${queue(visit, requests)} ${checks(visit, now)} ${agreements(visit, providers, state.controls, emails)}
    ${history(visit, requests)}`,
  })
}

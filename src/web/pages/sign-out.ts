import { endEverySession, endSession } from '../../accounts/identity/sessions.ts'
import { withNotice } from '../components/notices.ts'
import { PageError } from '../http/page-error.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import { endedSessionCookie } from '../http/session-cookie.ts'
import type { AccountVisit } from '../http/visit.ts'

export const signOutRoutes: readonly PageRoute[] = [
  {
    method: 'POST',
    path: '/sign-out',
    access: 'account',
    async handle({ deps, signedIn: { session } }) {
      await endSession(deps.identity, session.accountId, session.id)
      return toSignIn(deps.appUrl)
    },
  },
  {
    method: 'POST',
    path: '/account/sessions/end-all',
    access: 'account',
    async handle({ deps, signedIn: { session } }) {
      await endEverySession(deps.identity, session.accountId)
      return toSignIn(deps.appUrl)
    },
  },
  { method: 'POST', path: '/account/sessions/:sessionId/end', access: 'account', handle: endOne },
]

async function endOne({ deps, params, signedIn: { session } }: AccountVisit): Promise<Response> {
  const sessionId = params['sessionId'] ?? ''
  if (!(await endSession(deps.identity, session.accountId, sessionId))) throw new PageError('not_found')
  return sessionId === session.id ? toSignIn(deps.appUrl) : redirect(withNotice('/account', 'session-ended'))
}

function toSignIn(appUrl: string): Response {
  return redirect(withNotice('/sign-in', 'signed-out'), [endedSessionCookie('account', appUrl.startsWith('https:'))])
}

import { endEverySession, endSession } from '../../accounts/sessions.ts'
import { withNotice } from '../notices.ts'
import { redirect } from '../redirect.ts'
import { PageRefusal } from '../refusals.ts'
import type { Route } from '../route.ts'
import { endedSessionCookie } from '../session-cookie.ts'
import type { AccountVisit } from '../visit.ts'

export const signOutRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/sign-out',
    access: 'account',
    async handle({ parts, signedIn: { session } }) {
      await endSession(parts.identity, session.accountId, session.id)
      return toSignIn(parts.appUrl)
    },
  },
  {
    method: 'POST',
    path: '/account/sessions/end-all',
    access: 'account',
    async handle({ parts, signedIn: { session } }) {
      await endEverySession(parts.identity, session.accountId)
      return toSignIn(parts.appUrl)
    },
  },
  { method: 'POST', path: '/account/sessions/:sessionId/end', access: 'account', handle: endOne },
]

async function endOne({ parts, params, signedIn: { session } }: AccountVisit): Promise<Response> {
  const sessionId = params['sessionId'] ?? ''
  if (!(await endSession(parts.identity, session.accountId, sessionId))) throw new PageRefusal('not_found')
  return sessionId === session.id ? toSignIn(parts.appUrl) : redirect(withNotice('/account', 'session-ended'))
}

function toSignIn(appUrl: string): Response {
  return redirect(withNotice('/sign-in', 'signed-out'), [endedSessionCookie('account', appUrl.startsWith('https:'))])
}

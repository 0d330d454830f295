import { isConfirmed } from '../../accounts/operators/operator-sessions.ts'
import { hasRole, type OperatorRole } from '../../domain/operators.ts'
import { readOwnForm } from '../http/own-form.ts'
import { PageError } from '../http/page-error.ts'
import { redirect } from '../http/redirect.ts'
import type { ConsoleSignInRoute, OperatorRoute } from '../http/route.ts'
import { readSignedInOperator, readSessionToken, readSignedIn } from '../http/session-cookie.ts'
import type { OperatorVisit, Visit } from '../http/visit.ts'
import { consolePath, pathToConfirm, pathToSignIn } from './console-links.ts'
import { backToOverview, consolePage, consoleErrorPage } from './console-page.ts'

/** Serves a console request after checking the session, the role, and recent confirmation. */
export async function serveConsole(
  visit: Visit,
  request: Request,
  route: OperatorRoute | ConsoleSignInRoute,
): Promise<Response> {
  const isHttps = visit.deps.appUrl.startsWith('https:')
  const token = readSessionToken(visit.headers, 'operator', isHttps)
  const signedInOperator = await readSignedInOperator(visit.deps, token)
  try {
    if (route.access === 'operator' && signedInOperator === undefined)
      return await refuseStranger(visit, {
        wasInside: token !== undefined,
        hasIds: route.path.includes(':'),
        isGet: route.method === 'GET',
      })
    const form = await readOwnForm(visit, request, signedInOperator)
    if (route.access === 'console_sign_in')
      return await route.handle({ ...visit, form, signedIn: undefined, signedInOperator })
    // A form can take half a minute to arrive: read the operator again, who may have been removed or have another role
    // by now.
    const still = route.method === 'GET' ? signedInOperator : await readSignedInOperator(visit.deps, token)
    if (still === undefined) return redirect(pathToSignIn(undefined))
    return await serveOperator({ ...visit, ...still, form, signedIn: undefined }, route)
  } catch (error) {
    return consoleErrorPage(visit, signedInOperator, error)
  }
}

async function serveOperator(visit: OperatorVisit, route: OperatorRoute): Promise<Response> {
  const { operator, session, deps } = visit
  if (!hasRole(operator.role, route.role)) return showNeededRole(visit, route.role)
  if (route.stepUp && !isConfirmed(session, deps.clock.nowMs()))
    return redirect(pathToConfirm(route.method === 'GET' ? visit.path : pageOf(visit)))
  return route.handle(visit)
}

/**
 * Redirects visitors without a console session to sign-in and back. Pages with ids are reported as not found to
 * visitors who are signed in to an account, and so is any POST from a visitor who never had a console session (contract
 * 24.7).
 */
async function refuseStranger(
  { deps, headers, path }: Visit,
  { wasInside, hasIds, isGet }: { readonly wasInside: boolean; readonly hasIds: boolean; readonly isGet: boolean },
): Promise<Response> {
  if (wasInside) return redirect(pathToSignIn(isGet ? path : undefined))
  if (!isGet) throw new PageError('not_found')
  const account = readSessionToken(headers, 'account', deps.appUrl.startsWith('https:'))
  if (hasIds && (await readSignedIn(deps, account)) !== undefined) throw new PageError('not_found')
  return redirect(pathToSignIn(path))
}

/** The page that a form was sent from, from the `Referer` header; only console pages are accepted. */
function pageOf({ headers }: Visit): string {
  const referer = headers.get('referer') ?? ''
  if (!URL.canParse(referer)) return consolePath(null)
  const { pathname, search, host } = new URL(referer)
  return consolePath(host === headers.get('host') ? `${pathname}${search}` : null)
}

function showNeededRole(visit: OperatorVisit, needed: OperatorRole): Promise<Response> {
  return consolePage(visit, {
    title: 'Your role does not allow this',
    lead: `This requires the role ${needed}; yours is ${visit.operator.role}. An admin can change your role.`,
    narrow: true,
    status: 403,
    body: backToOverview,
  })
}

import { withNotice, type Notice } from '../components/notices.ts'
import { ownPath } from '../http/redirect.ts'

const start = '/operator'

/** Validates a redirect target within the console; returns the overview if it is not a console page. */
export function consolePath(text: string | null): string {
  const path = ownPath(text, start)
  // Normalize as browsers do: `/operator/../account` is not a console page.
  const { pathname } = new URL(path, 'http://console.invalid')
  return pathname === start || pathname.startsWith(`${start}/`) ? path : start
}

/** The path to console sign-in, then on to `next`. */
export function pathToSignIn(next: string | undefined): string {
  return next === undefined ? '/operator/sign-in' : `/operator/sign-in?next=${encodeURIComponent(next)}`
}

/** The path to confirmation, then back to `next`. */
export function pathToConfirm(next: string): string {
  return `/operator/confirm?next=${encodeURIComponent(next)}`
}

/** A console path with a notice, which replaces an earlier notice. */
export function consolePathWith(next: string, notice: Notice): string {
  const [path = start, search = ''] = next.split('?')
  const query = new URLSearchParams(search)
  query.delete('done')
  return query.size === 0 ? withNotice(path, notice) : `${path}?${query.toString()}&done=${notice}`
}

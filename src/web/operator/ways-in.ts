import { withNotice, type Notice } from '../notices.ts'
import { ownPath } from '../redirect.ts'

const start = '/operator'

/** A page of the console to go on to, as an address or a form named it; the overview where it is none. */
export function consolePath(text: string | null): string {
  const path = ownPath(text, start)
  // As browsers read it: `/operator/../account` is no page of the console.
  const { pathname } = new URL(path, 'http://console.invalid')
  return pathname === start || pathname.startsWith(`${start}/`) ? path : start
}

/** To the console's door, and on to where somebody wanted to go. */
export function pathToSignIn(next: string | undefined): string {
  return next === undefined ? '/operator/sign-in' : `/operator/sign-in?next=${encodeURIComponent(next)}`
}

/** To the proof of who sits there, and back. */
export function pathToConfirm(next: string): string {
  return `/operator/confirm?next=${encodeURIComponent(next)}`
}

/** A page of the console, with a sentence on it instead of the one that was there. */
export function consolePathWith(next: string, notice: Notice): string {
  const [path = start, search = ''] = next.split('?')
  const query = new URLSearchParams(search)
  query.delete('done')
  return query.size === 0 ? withNotice(path, notice) : `${path}?${query.toString()}&done=${notice}`
}

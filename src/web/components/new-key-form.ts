import { html } from 'hono/html'
import { maxNameCharacters } from '../../accounts/accounts-error.ts'
import type { SignedIn } from '../http/visit.ts'
import { field } from './field.ts'
import type { Html } from './html.ts'
import { csrfInput } from './layout.ts'

/** Optional content of the form: the submitted name, its error, and the limit fields. */
interface NewKey {
  readonly name?: string
  readonly problem?: string | undefined
  readonly limits?: Html
}

/** The form that creates a key. */
export function newKeyForm(signedIn: SignedIn, { name = '', problem, limits }: NewKey = {}): Html {
  return html`<form method="post" action="/account/keys">
    ${csrfInput(signedIn)}
    ${field({
      name: 'name',
      label: 'Name',
      hint: 'The name helps you recognize the key. Examples: laptop, billing-worker.',
      value: name,
      problem,
      maxCharacters: maxNameCharacters,
    })}
    ${limits ?? ''} <button>Create key</button>
  </form>`
}

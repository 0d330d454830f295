import { html } from 'hono/html'
import { maxNameCharacters } from '../accounts/refusals.ts'
import { field } from './field.ts'
import { csrfInput, type Html } from './layout.ts'
import type { SignedIn } from './visit.ts'

/** What the form shows besides: what was filled in, why it was not taken, and how the key can be limited. */
interface NewKey {
  readonly name?: string
  readonly problem?: string | undefined
  readonly limits?: Html
}

/** Makes a key: a name and one click. */
export function newKeyForm(signedIn: SignedIn, { name = '', problem, limits }: NewKey = {}): Html {
  return html`<form method="post" action="/account/keys">
    ${csrfInput(signedIn)}
    ${field({
      name: 'name',
      label: 'Name',
      hint: 'For you alone, such as laptop or billing-worker.',
      value: name,
      problem,
      maxCharacters: maxNameCharacters,
    })}
    ${limits ?? ''} <button>Create key</button>
  </form>`
}

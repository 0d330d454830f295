import { html } from 'hono/html'
import type { UpstreamTest } from '../../domain/upstream.ts'
import type { UpstreamFault, UpstreamField } from '../http/upstream-connector.ts'
import type { AccountVisit } from '../http/visit.ts'
import { field, select, type Field } from './field.ts'
import type { Html } from './html.ts'
import { csrfInput } from './layout.ts'

/** The form that connects a provider. Rarely used fields are collapsed unless one of them has an error. */
export function connectForm(
  visit: AccountVisit,
  fault: UpstreamFault | undefined,
  failed: UpstreamTest | undefined,
): Html {
  const { deps, form, signedIn } = visit
  const { providers, formats, timeouts } = deps.upstreams
  // Refill the form after an error, except an invalid base URL, which may contain a credential.
  const typed = (name: UpstreamField): string =>
    (fault === undefined && failed === undefined) || (name === 'base_url' && fault?.field === name)
      ? ''
      : form.text(name)
  const problemOf = (name: UpstreamField): string | undefined => (fault?.field === name ? fault.sentence : undefined)
  const text = (it: Omit<Field, 'value' | 'problem'> & { readonly name: UpstreamField }): Html =>
    field({ ...it, value: typed(it.name), problem: problemOf(it.name) })
  const choice = (name: UpstreamField, label: string, options: readonly (readonly [string, string])[]): Html =>
    select(name, label, options, typed(name), name, problemOf(name))
  const isRare = fault !== undefined && !['provider', 'model', 'credential'].includes(fault.field)
  return html`<form method="post" action="/account/upstreams">
    ${csrfInput(signedIn)}
    ${choice(
      'provider',
      'Provider',
      providers.map(({ id, name, needsBaseUrl }) => [id, needsBaseUrl ? `${name} (needs a base URL)` : name]),
    )}
    ${text({ name: 'model', label: 'Model', hint: `The provider’s name for the model, such as ${providers[0]?.exampleModel ?? 'my-model'}.`, maxCharacters: 200 })}
    ${field({
      name: 'credential',
      label: 'Credential',
      hint: 'An API key, or the JSON of an AWS or Google Cloud key on one line. Leave it empty only for a server that needs no key. It is never shown again.',
      type: 'password',
      optional: true,
      maxCharacters: 8192,
      problem: problemOf('credential'),
    })}
    <details ${isRare || typed('base_url') !== '' ? 'open' : ''}>
      <summary>Base URL, region, format, timeouts</summary>
      <div class="panel">
        ${text({ name: 'base_url', label: 'Base URL', hint: 'Default: the provider’s. Required for a custom endpoint and Azure OpenAI.', type: 'url', optional: true, maxCharacters: 1000 })}
        ${text({ name: 'region', label: 'Region', hint: 'Required for Amazon Bedrock, such as us-east-1, unless the credential names it. Optional for Google Vertex AI.', optional: true, maxCharacters: 60 })}
        ${choice('format', 'Format', [['', 'Default'], ...formats.map((id) => [id, id] as const)])}
        ${text({ name: 'auth_header', label: 'Credential header', hint: 'Default: the provider’s. With authorization, it is sent as a Bearer token.', optional: true, maxCharacters: 64 })}
        ${timeouts.map(({ name, label, limits }) =>
          text({
            name: `timeout_${name}`,
            label,
            hint: `${limits} For example, 90s or 5m.`,
            optional: true,
            maxCharacters: 12,
          }),
        )}
        ${text({ name: 'headers', label: 'Extra header', hint: 'Sent with every request, such as x-team=blue. Do not enter a credential.', optional: true, maxCharacters: 1100 })}
      </div>
    </details>
    ${
      failed === undefined
        ? ''
        : html`<label class="choice"
            ><input type="checkbox" name="untested" /> <span>Save anyway, without a test</span></label
          >`
    }
    <p class="after"><button>${failed === undefined ? 'Test and connect' : 'Try again'}</button></p>
  </form>`
}

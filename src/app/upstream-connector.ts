import type { AccountsDeps } from '../accounts/control-plane.ts'
import { prepareUpstream, saveUpstream } from '../accounts/upstreams.ts'
import type { Mode } from '../config/config.ts'
import { findPreset, presetNames } from '../config/presets.ts'
import {
  assertEncrypted,
  maxModelCharacters,
  readUpstream,
  UpstreamUnreadable,
  withCredential,
  type UpstreamProblem,
} from '../config/read-upstream.ts'
import { timeoutSettings } from '../config/upstream-extras.ts'
import { formatIds } from '../domain/format-id.ts'
import { createVault } from '../providers/auth/vault.ts'
import type {
  OfferedProvider,
  UpstreamConnector,
  UpstreamFault,
  UpstreamField,
  UpstreamForm,
} from '../web/http/upstream-connector.ts'
import type { Providers } from './providers.ts'
import type { Runtime } from './runtime.ts'

/** What the page that connects providers needs: presets, validation, encryption, and test requests. */
export function openUpstreamConnector({ config, keys, random }: Runtime, providers: Providers): UpstreamConnector {
  const vault = createVault({ ...keys, random })
  return {
    providers: presetNames.map(offered),
    formats: formatIds,
    test: (upstream) => providers.test(upstream),
    timeouts: timeoutSettings,
    async connect(control: AccountsDeps, accountId: string, form: UpstreamForm) {
      try {
        const upstream = await prepareUpstream(control, accountId, readDraft(form, config.mode), (owner, of, secret) =>
          vault.seal(owner, of, secret),
        )
        const failed = form.isUntested ? undefined : await providers.test({ ...upstream, position: 0 })
        if (failed !== undefined && failed.outcome !== 'answered') return { failed }
        await saveUpstream(control, upstream)
        return { id: upstream.id }
      } catch (error) {
        if (error instanceof UpstreamUnreadable) return faultOf(error)
        throw error
      }
    },
  }
}

function offered(id: string): OfferedProvider {
  const preset = findPreset(id)
  if (preset === undefined) throw new Error(`there is no preset named ${id}`)
  const { name, exampleModel, baseUrl, credential } = preset
  return { id, name, exampleModel, needsBaseUrl: baseUrl === null, credential }
}

function readDraft(form: UpstreamForm, mode: Mode) {
  const given = (text: string): string | undefined => (text === '' ? undefined : text)
  const checked = readUpstream({
    provider: form.provider,
    model: given(form.model),
    baseUrl: given(form.base_url),
    region: given(form.region),
    format: given(form.format),
    authHeader: given(form.auth_header),
    timeouts: Object.fromEntries(timeoutSettings.map(({ name }) => [name, given(form.timeouts[name] ?? '')])),
    headers: form.headers
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== ''),
  })
  const { provider, model, format, authHeader, timeouts, headers } = checked
  const sealable = withCredential(checked, form.credential)
  assertEncrypted(mode, checked.preset, sealable.baseUrl, sealable.credential)
  return { provider, model, format, authHeader, timeouts, headers, ...sealable }
}

function faultOf({ problem, preset, detail }: UpstreamUnreadable): UpstreamFault {
  const name = preset?.name ?? 'This provider'
  const faults: Readonly<Record<UpstreamProblem, readonly [UpstreamField, string]>> = {
    provider_unknown: ['provider', 'Choose a provider from the list.'],
    model_missing: [
      'model',
      `Enter the provider’s name for the model, such as ${preset?.exampleModel ?? 'my-model'}, in at most ${maxModelCharacters} characters.`,
    ],
    base_url_missing: ['base_url', `${name} needs the base URL of its API.`],
    base_url_malformed: ['base_url', 'Enter an http or https URL without a user name or fragment.'],
    base_url_secret: [
      'base_url',
      'This seems to contain a credential, and base URLs are shown in full. Enter the credential in its own field.',
    ],
    base_url_plain: ['base_url', 'Credentials are sent only over https. Enter a URL that starts with https.'],
    format_unknown: ['format', 'Choose a format from the list.'],
    auth_header_malformed: [
      'auth_header',
      'A credential cannot be sent in this header. Most providers use authorization.',
    ],
    region_malformed: ['region', 'This is not the name of a region. Example: us-east-1.'],
    region_missing: ['region', `${name} needs a region, such as us-east-1.`],
    credential_missing: ['credential', `${name} needs a credential.`],
    credential_malformed: [
      'credential',
      `This credential ${detail?.problem ?? 'is not valid'}: ${detail?.fix ?? 'enter another one'}.`,
    ],
    credential_unused: ['credential', `${name} does not use a credential. Leave this empty.`],
    timeout_malformed: [
      `timeout_${detail?.problem ?? 'connect'}` as UpstreamField,
      `Enter ${detail?.fix ?? 'a duration'}.`,
    ],
    header_malformed: [
      'headers',
      `This header cannot be used: ${detail?.problem ?? ''}. Example: ${detail?.fix ?? 'x-team=blue'}.`,
    ],
  }
  const [field, sentence] = faults[problem]
  return { field, sentence }
}

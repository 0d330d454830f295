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
    provider_unknown: ['provider', 'Choose a provider of the list.'],
    model_missing: [
      'model',
      `Name a model as the provider calls it, such as ${preset?.exampleModel ?? 'my-model'}; at most ${maxModelCharacters} characters.`,
    ],
    base_url_missing: ['base_url', `${name} needs the address of its API.`],
    base_url_malformed: ['base_url', 'That is not an http or https address without user name and fragment.'],
    base_url_secret: [
      'base_url',
      'This holds something like a credential, and addresses are shown. Put it into its own field.',
    ],
    base_url_plain: ['base_url', 'A credential is sent only to an address that begins with https.'],
    format_unknown: ['format', 'Choose a format of the list.'],
    auth_header_malformed: [
      'auth_header',
      'That is not the name of a header that can carry a credential. Usual is authorization.',
    ],
    region_malformed: ['region', 'That is not the name of a region. One looks like us-east-1.'],
    region_missing: ['region', `${name} needs a region, such as us-east-1.`],
    credential_missing: ['credential', `${name} needs a credential.`],
    credential_malformed: ['credential', `It ${detail?.problem ?? 'is none'}: ${detail?.fix ?? 'give another'}.`],
    credential_unused: ['credential', `${name} takes no credential.`],
    timeout_malformed: [
      `timeout_${detail?.problem ?? 'connect'}` as UpstreamField,
      `That is not ${detail?.fix ?? 'a duration'}.`,
    ],
    header_malformed: [
      'headers',
      `This cannot be used: ${detail?.problem ?? ''}. One looks like ${detail?.fix ?? 'x-team=blue'}.`,
    ],
  }
  const [field, sentence] = faults[problem]
  return { field, sentence }
}

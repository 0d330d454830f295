import { expect, test } from 'vitest'
import type { AccountsDeps } from '../../../src/accounts/control-plane.ts'
import type { Providers } from '../../../src/app/providers.ts'
import { createRuntime } from '../../../src/app/runtime.ts'
import { openUpstreamConnector } from '../../../src/app/upstream-connector.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { loadText, madeUpPepper, madeUpSealingKey } from '../../config/config-load.ts'

const form = {
  provider: 'custom',
  model: 'm',
  base_url: 'http://models.example/v1',
  region: '',
  format: '',
  credential: new Secret('made-up-credential'),
  auth_header: '',
  headers: '',
  timeouts: {},
  isUntested: true,
}
const env = { SVC_ROUTER_PEPPER: madeUpPepper, SVC_ROUTER_SEALING_KEY: madeUpSealingKey }

test('in production the form refuses to send a credential unencrypted, before anything is saved or sent', async () => {
  const config = loadText('mode: production\napp_url: https://app.example.com', { env })
  // Any use of these would throw.
  const [providers, control] = [{} as Providers, {} as AccountsDeps]
  const runtime = createRuntime(config, { clock: systemClock(), random: systemRandom(), log: () => {} })
  const connector = openUpstreamConnector(runtime, providers)
  expect(await connector.connect(control, 'acc_1', form)).toEqual({
    field: 'base_url',
    sentence: 'Credentials are sent only over https. Enter a URL that starts with https.',
  })
})

import { afterEach, beforeEach, expect, test } from 'vitest'
import { addWebhook, rotateWebhook, signingSecrets, type WebhookDeps } from '../../../src/accounts/alerts/webhooks.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { createSealer, type Sealer } from '../../../src/runtime/sealer.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { createStore, type Store } from '../../../src/storage/store.ts'
import { someRecord } from '../../audit-record.ts'
import { enginesFor } from '../../contract/engines.ts'

const [[, engine]] = enginesFor('webhooks') as [ReturnType<typeof enginesFor>[0]]
const dayMs = 86_400_000
let store: Store
let nowMs = 1_800_000_000_000

beforeEach(async () => {
  store = createStore(await (await engine.fresh())())
  nowMs = 1_800_000_000_000
  await store.addAccount({ id: 'acc_1', name: 'Ada', planId: 'free', suspended: false, createdAtMs: 1 }, someRecord())
})
afterEach(() => store.close())

function sealerOf(id: string): Sealer {
  const current = { id, key: new Secret(new Uint8Array(32).fill(id.length)) }
  return createSealer({ current, random: systemRandom() })
}

function deps({ requiresHttps = true, sealer = sealerOf('one') } = {}): WebhookDeps {
  const parts = { store, clock: { nowMs: () => nowMs }, random: systemRandom(), pepper: new Secret('p') }
  return { ...parts, actor: { kind: 'cli' }, sealer, requiresHttps, webhooksUrl: 'https://app.example.com/' }
}

const texts = (secrets: readonly Secret[]) => secrets.map((secret) => secret.reveal())

test('in production, a URL begins with https; in local mode, http is accepted, too', async () => {
  await expect(addWebhook(deps(), 'acc_1', 'http://example.com/')).rejects.toMatchObject({
    code: 'webhook_url_invalid',
  })
  await expect(addWebhook(deps(), 'acc_1', 'https://example.com/a')).resolves.toBeDefined()
  await expect(addWebhook(deps({ requiresHttps: false }), 'acc_1', 'http://example.com/')).resolves.toBeDefined()
  const long = `https://example.com/${'x'.repeat(1_000)}`
  await expect(addWebhook(deps(), 'acc_1', long)).rejects.toMatchObject({ code: 'webhook_url_invalid' })
})

test('both secrets sign for a day after a rotation, and after a second one only the last two', async () => {
  const first = await addWebhook(deps(), 'acc_1', 'https://example.com/')
  expect(texts(signingSecrets(first.webhook, sealerOf('one'), nowMs))).toEqual(texts([first.secret]))
  const second = await rotateWebhook(deps(), 'acc_1', first.webhook.id)
  const open = (webhook: typeof second.webhook, atMs: number) => texts(signingSecrets(webhook, sealerOf('one'), atMs))
  expect(open(second.webhook, nowMs + dayMs - 1)).toEqual(texts([second.secret, first.secret]))
  expect(open(second.webhook, nowMs + dayMs)).toEqual(texts([second.secret]))
  const third = await rotateWebhook(deps(), 'acc_1', first.webhook.id)
  expect(open(third.webhook, nowMs)).toEqual(texts([third.secret, second.secret]))
})

test('a secret belongs to its account and webhook, and a rotation replaces one that cannot be decrypted', async () => {
  const { webhook } = await addWebhook(deps(), 'acc_1', 'https://example.com/')
  expect(() => signingSecrets({ ...webhook, accountId: 'acc_2' }, sealerOf('one'), nowMs)).toThrow('not_authentic')
  expect(() => signingSecrets({ ...webhook, id: 'whk_2' }, sealerOf('one'), nowMs)).toThrow('not_authentic')
  const sealer = sealerOf('three')
  expect(() => signingSecrets(webhook, sealer, nowMs)).toThrow('unknown_key')
  const rotated = await rotateWebhook(deps({ sealer }), 'acc_1', webhook.id)
  expect(texts(signingSecrets(rotated.webhook, sealer, nowMs))).toEqual(texts([rotated.secret]))
})

import { expect, test } from 'vitest'
import { linksFor } from '../../../src/domain/links.ts'
import type { ModelFacts } from '../../../src/domain/model-facts.ts'
import { defaultPlans } from '../../../src/domain/plans.ts'
import type { Profile } from '../../../src/domain/profiles.ts'
import type { ServedProfile } from '../../../src/gateway/gateway.ts'
import { Catalog, type CatalogDeps } from '../../../src/http/endpoints/catalog.ts'
import { FakeBackend } from '../../gateway/fake-gateway.ts'

const facts: Readonly<Record<string, ModelFacts>> = {
  large: {
    contextWindow: 1_000_000,
    maxOutputTokens: 64_000,
    capabilities: { tools: true, image_input: true, reasoning: true },
  },
  small: { contextWindow: 32_000, capabilities: { tools: true, image_input: false } },
  silent: {},
  vectors: { contextWindow: 8_000 },
}

const price = { currency: 'EUR', inputPerMillion: 2.5, outputPerMillion: 10 }
const profiles: readonly Profile[] = [
  profile('all', ['large', 'silent', 'small']),
  profile('two', ['large', 'small'], { price }),
  profile('one', ['large'], { premium: true, quotaUnits: 3 }),
  profile('none', ['silent']),
  profile('my/vectors', ['vectors'], { embeddings: 'vectors-1', price: { currency: 'EUR', inputPerMillion: 0.1 } }),
]
let isManagedAccessOn = false
const deps: CatalogDeps = {
  isManagedAccessOn: () => isManagedAccessOn,
  baseUrl: 'http://127.0.0.1:8787/v1',
  links: linksFor('http://127.0.0.1:8787'),
  plans: defaultPlans,
  createdAt: 1_795_000_000,
  offers: async () => [
    { planId: 'pro', price: { currency: 'usd', minorUnits: 2000, interval: 'month', intervalCount: 1 } },
    { planId: 'max', price: null },
  ],
  backends: Object.entries(facts).map(([id, known]) => ({ id, simulated: false, facts: known })),
  profiles,
}
const catalog = new Catalog(deps)
const served: Pick<ServedProfile, 'profile' | 'backends'>[] = profiles.map((one) => ({
  profile: one,
  backends: one.backends.map((id) => Object.assign(new FakeBackend(id, 'openai-chat'), facts[id])),
}))
const [free, pro] = [defaultPlans[0]!, defaultPlans[1]!]

function profile(id: string, backends: readonly string[], more: Partial<Profile> = {}): Profile {
  return { id, description: `about ${id}`, backends, premium: false, quotaUnits: 1, ...more }
}

type Entry = Record<string, unknown>

function listed(plan = pro): Entry[] {
  return (catalog.models(served, plan) as { data: Entry[] }).data
}

test('sizes are the smallest known ones of its backends, and absent if none is known', () => {
  expect(listed().map(({ id, context_window: window, max_output_tokens: most }) => [id, window, most])).toEqual([
    ['all', 32_000, 64_000],
    ['two', 32_000, 64_000],
    ['one', 1_000_000, 64_000],
    ['none', undefined, undefined],
    ['my/vectors', 8_000, undefined],
  ])
  expect(listed()[3]).not.toHaveProperty('context_window')
})

test('a capability is supported if all backends have it, unsupported if one lacks it, and absent if unknown', () => {
  const [yes, no] = [{ supported: true }, { supported: false }]
  expect(listed().map(({ capabilities }) => capabilities)).toEqual([
    { streaming: yes, image_input: no },
    { streaming: yes, tools: yes, image_input: no },
    { streaming: yes, tools: yes, image_input: yes, reasoning: yes },
    { streaming: yes },
    { streaming: no },
  ])
})

test('units, plans, and the key’s entitlement are listed; prices only if they are configured', () => {
  const [, two, one, none, vectors] = listed(free)
  expect(two).toMatchObject({
    quota_units: 1,
    premium: false,
    plans: ['free', 'pro', 'max'],
    entitled: true,
    price: { currency: 'EUR', input_per_million: 2.5, output_per_million: 10 },
  })
  expect(one).toMatchObject({ quota_units: 3, premium: true, plans: ['pro', 'max'], entitled: false })
  expect(none).not.toHaveProperty('price')
  expect(vectors!['price']).toEqual({ currency: 'EUR', input_per_million: 0.1 })
  expect(listed(pro)[2]).toMatchObject({ entitled: true })
})

test('an embeddings profile lists its kind and endpoint, and is not offered to Codex', () => {
  expect(listed()[4]).toMatchObject({ kind: 'embeddings', endpoints: ['/v1/embeddings'], vectors: 'vectors-1' })
  expect(listed()[0]).toMatchObject({ kind: 'conversation' })
  const { models } = catalog.models(served, pro) as { models: { slug: string }[] }
  expect(models.map(({ slug }) => slug)).toEqual(['all', 'two', 'one', 'none'])
})

test('for Codex, every profile has a context window and the known facts about images and reasoning', () => {
  const { models } = catalog.models(served, pro) as { models: Entry[] }
  expect(models.map((model) => [model['context_window'], model['max_context_window']])).toEqual([
    [32_000, 32_000],
    [32_000, 32_000],
    [1_000_000, 1_000_000],
    [200_000, 200_000],
  ])
  expect(models.map((model) => model['input_modalities'])).toEqual([
    ['text'],
    ['text'],
    ['text', 'image'],
    ['text', 'image'],
  ])
  const thoughtless = [
    {
      profile: profile('quick', ['q']),
      backends: [Object.assign(new FakeBackend('q', 'openai-chat'), { capabilities: { reasoning: false } })],
    },
  ]
  expect(catalog.models(thoughtless, pro)).toMatchObject({
    models: [{ default_reasoning_level: null, supported_reasoning_levels: [], supports_reasoning_summaries: false }],
  })
})

test('the list has the fields for both kinds of clients, and a single entry equals its entry in the list', () => {
  const list = catalog.models(served, pro)
  expect(list).toMatchObject({ object: 'list', has_more: false, first_id: 'all', last_id: 'my/vectors' })
  expect(listed()[4]).toMatchObject({
    id: 'my/vectors',
    object: 'model',
    created: 1_795_000_000,
    owned_by: 'svc-router',
    type: 'model',
    display_name: 'my vectors',
    created_at: '2026-11-18T11:06:40.000Z',
  })
  expect(catalog.model('my/vectors', served, pro)).toEqual(listed()[4])
  expect(catalog.models([], pro)).toMatchObject({ data: [], first_id: null, last_id: null })
})

test('the public catalog has the same facts as the list', () => {
  const { profiles: shown } = catalog.modelCatalog() as { profiles: Entry[] }
  expect(shown.map(({ id }) => id)).toEqual(listed().map(({ id }) => id))
  for (const [index, { streaming, ...entry }] of shown.entries()) {
    expect(listed()[index]).toMatchObject(entry)
    expect(entry['capabilities']).toMatchObject({ streaming: { supported: streaming } })
  }
})

test('simulated backends contribute no facts to a profile with real ones', () => {
  const mixed = profile('mixed', ['real', 'sim'])
  const backends = [
    { id: 'sim', simulated: true, facts: { capabilities: { tools: true } } },
    { id: 'real', simulated: false, facts: { contextWindow: 5 } },
  ]
  const { profiles: shown } = new Catalog({ ...deps, backends, profiles: [mixed] }).modelCatalog() as {
    profiles: Entry[]
  }
  expect(shown[0]).toMatchObject({ context_window: 5, capabilities: { streaming: { supported: true } } })
  expect(shown[0]!['capabilities']).not.toHaveProperty('tools')
})

test('only plans that are sold have a price', async () => {
  const { plans } = (await catalog.pricing()) as { plans: Entry[] }
  expect(plans.map(({ id, price: cost }) => [id, cost])).toEqual([
    ['free', undefined],
    ['pro', { currency: 'usd', minor_units: 2000, interval: 'month', interval_count: 1 }],
    ['max', undefined],
  ])
})

test('the prices say whether managed access is on now, and where to request it', async () => {
  expect(await catalog.pricing()).toMatchObject({ launch_boundary: { managed_access: 'disabled' } })
  isManagedAccessOn = true
  expect(await catalog.pricing()).toMatchObject({
    launch_boundary: { managed_access: 'enabled', managedAccessUrl: deps.links.managedAccessUrl },
  })
  isManagedAccessOn = false
})

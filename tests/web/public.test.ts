import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import { openIncident, updateIncident } from '../../src/accounts/status/incidents.ts'
import { clientRecipes } from '../../src/domain/client-recipes.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { clientConfigFor } from '../../src/web/components/connect-text.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'

let service: Service
let visitor: Visitor
let owner: Visitor
let clock: SkippingClock
beforeAll(async () => {
  clock = new SkippingClock()
  ;({ service, visitor } = await startWeb({ clock }))
  owner = new Visitor(service.config.appUrl)
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  const { token } = await openSession(accountsDeps, service.account.id, { method: 'link', agent: 'Tests' })
  owner.cookie = `svc_session=${token.reveal()}`
})
afterAll(() => service.stop())

const read = async (path: string, who = visitor): Promise<string> => {
  const response = await who.get(path)
  expect(response.status, path).toBe(200)
  return (await response.text()).replaceAll(/\s+/g, ' ').replaceAll('&quot;', '"').replaceAll('&#39;', "'")
}
const readJson = async <Value>(path: string, who = visitor): Promise<Value> =>
  (await (await who.get(path)).json()) as Value

describe('plans', () => {
  test("the home page, the pricing page, and the API's JSON show the same numbers", async () => {
    const headers = { 'user-agent': 'tests/1.0' }
    const pricing = (await (await fetch(`${service.origin}/pricing`, { headers })).json()) as {
      plans: { name: string; requests_per_month: number; requests_per_minute: number }[]
    }
    expect(pricing.plans.length).toBe(3)
    for (const path of ['/', '/pricing']) {
      const text = await read(path)
      for (const { name, requests_per_month: month, requests_per_minute: minute } of pricing.plans) {
        expect(text).toContain(name)
        expect(text).toContain(`${month.toLocaleString('en-US')}<span> requests per month`)
        expect(text).toContain(`${minute.toLocaleString('en-US')} requests per minute`)
      }
    }
  })

  test("the account's own plan is marked", async () => {
    expect(await read('/pricing', owner)).toMatch(/Max <span class="tag good">your plan/)
    expect(await read('/pricing')).not.toContain('yours')
  })
})

describe('models', () => {
  test('every profile of the catalog has a page with its description and backends, and no others exist', async () => {
    const headers = { 'user-agent': 'tests/1.0' }
    const catalog = (await (await fetch(`${service.origin}/model-catalog`, { headers })).json()) as {
      profiles: { id: string; description: string }[]
    }
    const list = await read('/models')
    for (const { id, description } of catalog.profiles) {
      expect(list).toContain(`href="/models/${id}"`)
      const text = await read(`/models/${id}`)
      expect(text).toContain(description)
      expect(text).toContain('need an active key')
    }
    expect(await read('/models/svc-router/frontier')).toMatch(/alpha<\/code>.*beta<\/code>.*gamma<\/code>/)
    for (const path of ['/models/svc-router/none', '/models/none', '/models/a/b/c'])
      expect((await visitor.get(path)).status).toBe(404)
  })

  test("a profile's page says whether the account's own providers serve it", async () => {
    expect(await read('/models/svc-router/frontier')).toContain('Your own providers are tried before these:')
    expect(await read('/models/svc-router/fusion')).toContain('Fusion uses your own providers and these:')
  })

  test('the cost of a profile that own and configured providers serve is that of the own ones', async () => {
    expect(await read('/models/svc-router/frontier')).toContain(
      '<dd>What your own providers charge. Not stated for the backends of this service</dd>',
    )
  })

  test("a profile's page says when none of its requests counted, and what does not count", async () => {
    const text = await read('/models/svc-router/fusion')
    expect(text).toContain('No requests were counted in the last 90 days.')
    expect(text).toContain('Answers by fusion do not count.')
    expect(text).toContain(': no counted requests"')
  })

  test("a profile's page marks the backends that serve only accounts with managed access", async () => {
    const other = await startWeb({
      facts: { beta: { managed: true, credential_env: 'BETA_KEY' } },
      env: { BETA_KEY: 'made-up' },
    })
    try {
      const items = (await read('/models/svc-router/frontier', other.visitor)).match(/<li> <code>.*?<\/li>/g)!
      const marked = items.filter((item) => item.includes('(only for accounts with <a href="/account/managed-access">'))
      expect(marked.map((item) => /<code>(.*?)</.exec(item)![1])).toEqual(['beta'])
      expect(items.length).toBeGreaterThan(1)
    } finally {
      await other.service.stop()
    }
  })

  test.each([
    {
      about: 'with simulated backends only',
      options: { formats: [] },
      texts: {
        'svc-router/frontier': 'Until you connect a provider, these simulated providers answer:',
        'svc-router/fusion': 'Until you connect a provider, these simulated providers answer:',
      },
      costs: { 'svc-router/fusion': 'What your own providers charge' },
      asksForProvider: false,
    },
    {
      about: 'with profiles without backends, and of other backends',
      options: {
        settings: {
          profiles: {
            'svc-router/frontier': { backends: [] },
            'team/one': { description: 'One', backends: ['alpha'] },
            'team/none': { description: 'None', backends: [] },
          },
        },
      },
      texts: {
        'svc-router/frontier': 'This profile uses the providers that you connect. <a href="/account/upstreams">',
        'svc-router/fusion': 'This profile uses the providers that you connect. <a href="/account/upstreams">',
        'team/one': 'This profile uses these backends, not the providers that you connect:',
        'team/none': 'No backends are configured for this profile. <a href="/support">',
      },
      costs: { 'svc-router/frontier': 'What your own providers charge', 'team/one': 'Not stated' },
      asksForProvider: true,
    },
  ])('$about, the pages say which providers answer', async ({ options, texts, costs, asksForProvider }) => {
    const other = await startWeb(options)
    try {
      for (const [id, text] of Object.entries(texts)) expect(await read(`/models/${id}`, other.visitor)).toContain(text)
      for (const [id, text] of Object.entries(costs))
        expect(await read(`/models/${id}`, other.visitor)).toContain(`<dt>Cost</dt> <dd>${text}</dd>`)
      const step = await read('/connect/curl', other.visitor)
      expect(step.includes('Requests need a model provider.')).toBe(asksForProvider)
    } finally {
      await other.service.stop()
    }
  })
})

describe('connecting', () => {
  test.each(clientRecipes)(
    '$name: the page shows the configuration that the CLI prints, with our address and no key',
    async (connection) => {
      const text = await read(`/connect/${connection.name}`, owner)
      const lines = connection
        .write(clientConfigFor(service.config))
        .split('\n')
        .filter((line) => line.trim() !== '')
      for (const line of lines)
        expect(text).toContain(line.trim().replaceAll(/\s+/g, ' ').replaceAll('<', '&lt;').replaceAll('>', '&gt;'))
      expect(text).toContain('sk_svc_…')
      expect(text).not.toMatch(/sk_svc_[0-9A-Za-z]/)
      expect(await read(`/connect/${connection.name}`)).toContain(
        `/sign-in?next=${encodeURIComponent(`/connect/${connection.name}`)}`,
      )
    },
  )

  test('the page waits for the first request after it was opened, and shows the backend that answered but no text', async () => {
    await service.chat()
    await expect.poll(() => service.store.listRequests({ limit: 1 }).then(([one]) => one?.state)).toBe('done')
    await clock.skip(1_000)
    const page = await read('/connect/curl', owner)
    expect(page).toContain('Waiting for your first request…')
    const [, url = ''] = /data-wait="([^"]+)"/.exec(page) ?? []
    const progress = () => readJson<{ arrived: boolean; text: string }>(url, owner)
    expect(await progress()).toEqual({ arrived: false, text: 'Waiting for your first request…' })
    for (const provider of service.providers) provider.script([{ do: 'status', status: 503 }])
    await service.chat()
    await expect.poll(async () => (await progress()).text).toContain('failed with server_is_overloaded')
    await clock.skip(400_000)
    await service.chat({ messages: [{ role: 'user', content: 'canary-in-a-prompt' }] })
    await expect
      .poll(progress)
      .toEqual({ arrived: true, text: 'It works: alpha answered your request for svc-router/frontier.' })
    const [, again = ''] = /href="(\/connect\/curl\?since=\d+)"/.exec(page) ?? []
    expect(await read(again, owner)).toContain('It works: alpha answered your request')
  })

  test('the list has the base URL of each API, which Anthropic clients need without /v1', async () => {
    const { baseUrl } = service.config
    const list = await read('/connect')
    expect(list).toContain(`<code>${baseUrl}</code> for the OpenAI API`)
    expect(list).toContain(`use <code>${baseUrl.slice(0, -'/v1'.length)}</code>`)
    expect(baseUrl).toMatch(/\/v1$/)
  })

  test("an account sees nothing of another's requests, and a visitor without an account sees nothing", async () => {
    const { account } = await service.addAccount('another', 'free')
    const other = new Visitor(service.config.appUrl)
    const { token } = await openSession({ ...service.accountsDeps, store: service.store }, account.id, {
      method: 'link',
      agent: 'Tests',
    })
    other.cookie = `svc_session=${token.reveal()}`
    expect(await readJson('/account/first-request?since=0', other)).toMatchObject({ arrived: false })
    expect((await visitor.get('/account/first-request')).status).toBe(303)
    expect((await visitor.get('/connect/none')).status).toBe(404)
  })
})

interface Summary {
  readonly status: { readonly indicator: string; readonly description: string }
  readonly components: readonly { readonly name: string; readonly status: string }[]
  readonly incidents: readonly {
    readonly name: string
    readonly status: string
    readonly incident_updates: readonly { readonly body: string }[]
  }[]
}

describe('status', () => {
  const later = async (): Promise<void> => clock.skip(10_000)

  test('the page, its JSON, and the status format for tools say that everything works', async () => {
    await clock.skip(700_000)
    await service.chat()
    await later()
    expect(await read('/status')).toContain('Everything works')
    expect(await read('/')).toContain('Everything works')
    const summary = await readJson<Summary>('/api/v2/summary.json')
    expect(summary).toMatchObject({
      page: { name: 'svc-router' },
      scheduled_maintenances: [],
      status: { indicator: 'none' },
    })
    expect(summary.components.map(({ name }) => name)).toEqual([
      'API',
      'svc-router/frontier',
      'svc-router/fusion',
      'alpha',
      'beta',
      'gamma',
    ])
    const { headers } = await visitor.get('/status.json')
    expect(headers.get('access-control-allow-origin')).toBe('*')
  })

  test('status follows real traffic: a backend that rejects its credential is down, and its profile works', async () => {
    service.providers[0]!.script([{ do: 'status', status: 401 }])
    expect((await service.chat()).headers.get('x-svc-router-upstream')).toBe('beta')
    await later()
    const { components, status } = await readJson<Summary>('/api/v2/summary.json')
    const statusOf = (name: string): string => components.find((part) => part.name === name)!.status
    expect([statusOf('alpha'), statusOf('beta'), statusOf('svc-router/frontier')]).toEqual([
      'major_outage',
      'operational',
      'operational',
    ])
    expect(status).toEqual({ indicator: 'minor', description: 'Some systems are degraded' })
    expect(await read('/status')).toContain('its provider rejects the credential')
    await clock.skip(61_000)
    expect((await service.chat()).headers.get('x-svc-router-upstream')).toBe('alpha')
    await later()
    expect(await read('/status')).toContain('Everything works')
  })

  test("operators' incident reports are shown until they are resolved", async () => {
    const accountsDeps = { ...service.accountsDeps, store: service.store, clock }
    const { id } = await openIncident(accountsDeps, {
      title: 'Slow <b>answers</b>',
      impact: 'major',
      text: 'We look into it.',
    })
    await later()
    const text = await read('/status')
    expect(text).toContain('Slow &lt;b&gt;answers')
    expect(text).toContain('Important systems are degraded')
    const { incidents } = await readJson<Summary>('/api/v2/summary.json')
    expect(incidents).toMatchObject([
      { name: 'Slow <b>answers</b>', status: 'investigating', incident_updates: [{ body: 'We look into it.' }] },
    ])
    await updateIncident(accountsDeps, id, 'resolved', 'Fixed.')
    await later()
    expect((await readJson<Summary>('/api/v2/summary.json')).incidents).toEqual([])
    expect(await read('/status')).toMatch(/Past incidents.*Fixed\./)
  })

  test('status survives a restart: counts reach the database within a minute', async () => {
    await clock.skip(61_000)
    const counts = await service.store.listUptime('2000-01-01')
    expect(
      counts.filter(({ kind, name }) => kind === 'profile' && name === 'svc-router/frontier').length,
    ).toBeGreaterThan(0)
  })
})

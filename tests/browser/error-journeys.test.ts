import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { suspendAccount } from '../../src/accounts/accounts.ts'
import { approveUpgrade } from '../../src/accounts/billing/upgrade-requests.ts'
import { addProvenEmail } from '../../src/accounts/identity/sign-in.ts'
import { errorCatalog, type ErrorCode } from '../../src/domain/errors.ts'
import { mintKey } from '../../src/domain/keys.ts'
import { linksFor, type LinkName } from '../../src/domain/links.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { Service } from '../service.ts'
import { hasChromium } from '../web/chromium.ts'
import { upgradesDeps } from '../web/operator.ts'
import { Journey } from './journey.ts'

const suite = hasChromium('The ways from errors to their fixes') ? describe : describe.skip
/** Servers notice a change of keys and plans within a second. */
const noticedWithin = { timeout: 5000 }
const maxClicks = 3
const settings = {
  billing: { simulated: true },
  plans: {
    small: { name: 'Small', requests_per_minute: 3, requests_per_month: 2, premium: false },
    brisk: { name: 'Brisk', requests_per_minute: 2, requests_per_month: 100, premium: false },
    pro: { name: 'Pro', requests_per_minute: 60, requests_per_month: 1000, premium: true },
    max: { name: 'Max', requests_per_minute: 600, requests_per_month: 10_000, premium: true },
  },
  default_plan: 'small',
}

type Refused = Readonly<Record<string, unknown>> & { readonly code: ErrorCode; readonly message: string }
interface Owner {
  readonly id: string
  readonly address: string
  readonly key: string
  readonly keyId: string
}

suite('from the link in an error to the fix in at most three clicks', () => {
  const clock = new SkippingClock()
  let service: Service
  let journey: Journey
  let owners = 0
  beforeAll(async () => {
    service = await Service.start({ settings, clock })
  })
  afterAll(() => service.stop())
  afterEach(() => journey.end())

  async function owner(plan = 'small'): Promise<Owner> {
    owners++
    const { account, key, stored } = await service.addAccount(`owner ${owners}`, plan)
    const address = `owner${owners}@example.com`
    await addProvenEmail({ ...service.accountsDeps, store: service.store }, account.id, address)
    return { id: account.id, address, key, keyId: stored.id }
  }
  const ask = (key: string, model = 'svc-router/frontier'): Promise<Response> =>
    service.chat({ model }, { authorization: key === '' ? '' : `Bearer ${key}` })

  /** Is refused with `code`, and follows the one link of the message, which is `name`; errors with links carry it as a field, too. */
  async function follow(who: Journey, answer: Response, code: ErrorCode, name: LinkName): Promise<void> {
    journey = who
    const { error } = (await answer.json()) as { error: Refused }
    expect(error.code).toBe(code)
    const links = error.message.match(/https?:\/\/\S+/g) ?? []
    expect(links).toEqual([linksFor(service.config.appUrl)[name]])
    if (errorCatalog[code].signals !== 'none') expect(error[name]).toBe(links[0])
    if (answer.status === 401) expect(error['primaryActionUrl']).toBe(links[0])
    await journey.page.goto(links[0]!)
  }

  /** Creates a key on a page that offers it, then repeats the request with that key. */
  async function makeKey(): Promise<void> {
    await journey.page.getByLabel('Name').fill('the next one')
    await journey.pressButton('Create key')
    await journey.page.getByRole('heading', { name: 'Your new key' }).waitFor()
    expect((await ask(await journey.shownKey())).status).toBe(200)
  }

  async function upgrade(): Promise<void> {
    await journey.pressButton('Change to Pro')
    await journey.pressButton('Pay (simulated)')
    await journey.page.getByText('You are on the Pro plan').waitFor()
  }

  describe('missing', () => {
    test('a new visitor gets a working key with an address and a code', async () => {
      await follow(await Journey.begin(service), await ask(''), 'key_missing', 'accountSetupUrl')
      await journey.proveAddress('new@example.com')
      await journey.page.getByRole('heading', { name: 'Your first key' }).waitFor()
      expect((await ask(await journey.shownKey())).status).toBe(200)
      expect(journey.clicks).toBe(2)
    })

    test('an account that is signed out enters its address and a code, and then creates a key there', async () => {
      const { address } = await owner()
      await follow(await Journey.begin(service), await ask(''), 'key_missing', 'accountSetupUrl')
      await journey.proveAddress(address)
      await makeKey()
      expect(journey.clicks).toBe(maxClicks)
    })

    test('a signed-in account creates a key in one click', async () => {
      const { id } = await owner()
      const signedIn = await (await Journey.begin(service)).signedInTo(id)
      await follow(signedIn, await ask(''), 'key_missing', 'accountSetupUrl')
      await makeKey()
      expect(journey.clicks).toBe(1)
    })
  })

  const spoilt: readonly [name: string, code: ErrorCode, spoil: (who: Owner) => string | Promise<string>][] = [
    ['malformed', 'key_malformed', ({ key }) => key.slice(0, -3)],
    ['inactive', 'key_inactive', () => mintKey(systemRandom()).reveal()],
    [
      'revoked',
      'key_revoked',
      async ({ key, keyId }) => {
        await service.revoke(keyId)
        await expect.poll(async () => (await ask(key)).status, noticedWithin).toBe(401)
        return key
      },
    ],
  ]
  describe.each(spoilt)('%s', (_name, code, spoil) => {
    test('a signed-in account creates a key in one click', async () => {
      const who = await owner()
      const signedIn = await (await Journey.begin(service)).signedInTo(who.id)
      await follow(signedIn, await ask(await spoil(who)), code, 'accountUrl')
      await makeKey()
      expect(journey.clicks).toBe(1)
    })

    test('a signed-out account enters its address and a code, and then creates a key there', async () => {
      const who = await owner()
      await follow(await Journey.begin(service), await ask(await spoil(who)), code, 'accountUrl')
      await journey.proveAddress(who.address)
      await makeKey()
      expect(journey.clicks).toBe(maxClicks)
    })
  })

  test('the other link of a lost key gives a new key after an address and a code', async () => {
    const { address } = await owner()
    journey = await Journey.begin(service)
    const { error } = (await (await ask('sk_svc_lost')).json()) as { error: Refused }
    await journey.page.goto(String(error['keyRecoveryUrl']))
    await journey.proveAddress(address, 'Get a new key')
    await journey.page.getByRole('heading', { name: 'Your new key' }).waitFor()
    expect((await ask(await journey.shownKey())).status).toBe(200)
    expect(journey.clicks).toBe(2)
  })

  test('a suspended account learns why its key is inactive, and one click leads to support', async () => {
    const { id, key } = await owner()
    await suspendAccount(service.accountsDeps, id)
    await expect.poll(async () => (await ask(key)).status, noticedWithin).toBe(401)
    await follow(await (await Journey.begin(service)).signedInTo(id), await ask(key), 'key_inactive', 'accountUrl')
    await journey.page.getByText('This account is suspended').waitFor()
    await journey.pressLink('Contact support')
    await journey.page.getByRole('heading', { name: 'Support' }).waitFor()
    expect(journey.clicks).toBe(1)
  })

  test('after a quota error two clicks buy a larger month, and the same request is answered', async () => {
    const { id, key } = await owner()
    for (let request = 0; request < 2; request++) expect((await ask(key)).headers.get('x-quota-limit')).toBe('2')
    const signedIn = await (await Journey.begin(service)).signedInTo(id)
    await follow(signedIn, await ask(key), 'insufficient_quota', 'upgradeUrl')
    await upgrade()
    expect(journey.clicks).toBe(2)
    await expect.poll(async () => (await ask(key)).status, noticedWithin).toBe(200)
    expect((await ask(key)).headers.get('x-quota-limit')).toBe('1000')
  })

  test('after a plan error two clicks buy the premium plan, and fusion answers', async () => {
    const { id, key } = await owner()
    const signedIn = await (await Journey.begin(service)).signedInTo(id)
    await follow(signedIn, await ask(key, 'svc-router/fusion'), 'plan_required', 'upgradeUrl')
    await upgrade()
    expect(journey.clicks).toBe(2)
    await expect.poll(async () => (await ask(key, 'svc-router/fusion')).status, noticedWithin).toBe(200)
  })

  test("after a rate error waiting as told is enough, and three clicks from the error's page buy a higher limit", async () => {
    const { id, key } = await owner('brisk')
    const limited = async (): Promise<Response> => {
      let answer = await ask(key)
      for (let request = 0; request < 2; request++) answer = await ask(key)
      return answer
    }
    const answer = await limited()
    const { error } = (await answer.json()) as { error: Refused }
    expect([answer.status, error.code]).toEqual([429, 'rate_limit_exceeded'])
    expect(error.message).not.toMatch(/https?:/)
    expect(error.message).toMatch(new RegExp(`Please try again in ${answer.headers.get('retry-after')}s\\.$`))
    await clock.skip(Number(answer.headers.get('retry-after')) * 1000)
    expect((await ask(key)).status).toBe(200)

    expect((await limited()).status).toBe(429)
    journey = await (await Journey.begin(service)).signedInTo(id)
    await journey.page.goto(`${service.config.appUrl}/docs/errors/rate_limit_exceeded`)
    await journey.pressLink('Larger plans')
    await upgrade()
    expect(journey.clicks).toBe(maxClicks)
    await expect.poll(async () => (await ask(key)).status, noticedWithin).toBe(200)
    expect((await ask(key)).headers.get('x-ratelimit-limit')).toBe('60')
  })
})

suite('with plans that an operator approves, and providers that accounts add', () => {
  let service: Service
  let journey: Journey
  beforeAll(async () => {
    service = await Service.start({
      settings: { ...settings, billing: undefined, profiles: { 'svc-router/frontier': { backends: [] } } },
    })
  })
  afterAll(() => service.stop())
  afterEach(() => journey.end())

  test('without a provider two clicks connect one, and the same request is answered', async () => {
    const { account, key } = await service.addAccount('bringer', 'pro')
    const ask = (): Promise<Response> => service.chat({}, { authorization: `Bearer ${key}` })
    const { error } = (await (await ask()).json()) as { error: Refused }
    const link = `${service.config.appUrl}/account/upstreams`
    expect([error.code, error.message.match(/https?:\/\/\S+/g)]).toEqual(['no_provider_connected', [link]])
    journey = await (await Journey.begin(service)).signedInTo(account.id)
    const { page } = journey
    await page.goto(link)
    await page.getByLabel('Provider').selectOption('custom')
    await page.getByLabel('Model').fill('own')
    await page.getByLabel('Credential (optional)', { exact: true }).fill('sk-made-up-credential-of-a-test')
    await journey.press(page.locator('summary', { hasText: 'Base URL' }))
    await page.getByLabel('Base URL').fill(service.providers[0]!.baseUrl)
    await journey.pressButton('Test and connect')
    await page.getByText('The provider is connected').waitFor()
    expect(journey.clicks).toBe(2)
    await expect.poll(async () => (await ask()).status, noticedWithin).toBe(200)
  })

  test('after a quota error one click files an upgrade request, and once it is approved the same request is answered', async () => {
    const { account, key } = await service.addAccount('asker', 'small')
    await service.connectOwn('sk-made-up-credential-of-a-test', account.id)
    const ask = (): Promise<Response> => service.chat({}, { authorization: `Bearer ${key}` })
    for (let request = 0; request < 2; request++) await ask()
    const { error } = (await (await ask()).json()) as { error: Refused }
    journey = await (await Journey.begin(service)).signedInTo(account.id)
    await journey.page.goto(String(error['upgradeUrl']))
    await journey.pressButton('Request Pro')
    await journey.page.getByText('waiting for the operator').waitFor()
    expect(journey.clicks).toBe(1)
    const [request] = await service.store.billing.listUpgradeRequests({
      accountId: account.id,
      onlyOpen: true,
      limit: 1,
    })
    await approveUpgrade(upgradesDeps(service), request!.id)
    await expect.poll(async () => (await ask()).status, noticedWithin).toBe(200)
  })
})

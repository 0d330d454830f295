import type { PlanSales } from '../accounts/billing/billing-deps.ts'
import { recentReadiness } from '../accounts/managed-access/managed-readiness.ts'
import { openApiDocument } from '../api-docs/openapi.ts'
import { publicBackends, type Config } from '../config/config.ts'
import { ServiceError } from '../domain/errors.ts'
import { openProviderErrors } from '../domain/provider-error.ts'
import { formatById } from '../formats/formats.ts'
import type { ManagedAccess } from '../gateway/ports.ts'
import type { Conversations } from '../gateway/responses/conversations.ts'
import type { StoredResponses } from '../gateway/responses/stored-responses.ts'
import type { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import type { Api } from '../http/api.ts'
import type { Clock } from '../runtime/clock.ts'
import { createSealer, type Sealer } from '../runtime/sealer.ts'
import { readVersion } from '../runtime/version.ts'
import { Library, type LibraryDeps } from '../web/docs/library.ts'
import { RateLimiter } from '../web/http/rate-limiter.ts'
import { routes } from '../web/routes.ts'
import { createWebApp } from '../web/web-app.ts'
import type { ShownBackend, WebDeps } from '../web/web-deps.ts'
import { openAdmin } from './admin.ts'
import type { Alerts } from './alerts.ts'
import { openConsole } from './console.ts'
import { writeExample } from './error-examples.ts'
import { openLeakedKeys, openScanning } from './leaked-keys.ts'
import type { OpenedMail } from './mail.ts'
import type { Observation } from './observation.ts'
import type { Providers } from './providers.ts'
import type { Runtime } from './runtime.ts'
import type { Status } from './status.ts'
import type { Storage } from './storage.ts'
import { openUpstreamConnector } from './upstream-connector.ts'

/**
 * Limits per client address in ten minutes: enough for an office that shares one, too low for guessing and flooding
 * (contract 19.14, 29.12).
 */
const limiterWindowMs = 10 * 60_000
const emailsPerWindow = 20
const triesPerWindow = 60
const downloadsPerWindow = 10
const webhookTestsPerWindow = 10
/** How many of the account's latest requests are searched for the last use of its keys. */
const requestsSearched = 2_000

export interface OpenWebDeps {
  readonly storage: Storage
  readonly stored: StoredResponses
  readonly conversations: Conversations
  readonly api: Api
  readonly sales: PlanSales
  readonly offers: WebDeps['offers']
  readonly status: Status
  readonly observation: Pick<Observation, 'traffic'>
  readonly breakers: CircuitBreakers
  readonly managed: ManagedAccess
  readonly mail: OpenedMail
  readonly providers: Providers
  readonly alerts: Pick<Alerts, 'wake'>
}

/** Opens the web app and the operators' console. */
export function openWeb(runtime: Runtime, deps: OpenWebDeps): ReturnType<typeof createWebApp> {
  const { config, served, clock, random, log, links, mintRequestId } = runtime
  const { storage, sales, providers, status, mail } = deps
  const { sendMail, outbox } = mail
  const { store } = storage
  const parts = { store, clock, random, pepper: config.secrets.pepper }
  const { appUrl, baseUrl } = config
  const sealer = createSealer({ ...runtime.keys, random })
  const leaks = openLeakedKeys(runtime, { storage, sendMail })
  return createWebApp(
    {
      appUrl,
      baseUrl,
      mode: config.mode,
      trustedProxies: config.appListen.trustedProxies,
      get plans() {
        return served.plans
      },
      sales,
      offers: deps.offers,
      defaultPlan: config.defaultPlan,
      sendMail,
      outbox,
      limiters: createLimiters(clock),
      async usageOf({ id, planId }) {
        const plan = served.planById(planId)
        return plan === undefined ? undefined : storage.ledger.signals(id, plan)
      },
      lastUses: (accountId) => store.lastKeyUses(accountId, requestsSearched),
      activity: store,
      providerErrors: async (accountId, requestId) =>
        openProviderErrors(sealer, await store.listProviderErrors(requestId, accountId)),
      accountData: parts,
      records: store,
      answers: storedResponses(runtime, deps),
      conversations: storedConversations(runtime, deps),
      upstreams: openUpstreamConnector(runtime, providers),
      status: status.board,
      support: { store, clock, random, mailTo: config.mail?.support, sendMail },
      managed: { store, readiness: recentReadiness({ store, proveQuotas: () => storage.proveQuotas(), clock }) },
      leaks,
      handleScanningReport: openScanning(runtime, { providers, leaks }),
      get profiles() {
        return served.profiles
      },
      get backends() {
        return shownBackends({ mode: config.mode, backends: served.backends })
      },
      latestRequest: async (accountId) => (await store.listRequests({ accountId, limit: 1 }))[0],
      answerChat: (account, { request, response }) => {
        request.url = `/v1${formatById('openai-chat').path}`
        deps.api.handle(request, response, { caller: account })
      },
      library: openLibrary(runtime),
      openApi: openApiDocument({ baseUrl, links, version: readVersion() }),
      control: parts,
      budgets: { ...parts, clock: { nowMs: () => storage.quotaNowMs() } },
      webhooks: webhookDeps(runtime, deps, sealer),
      identity: parts,
      operators: { ...parts, store: store.operators },
      consoleDeps: openConsole(runtime, deps),
      admin: openAdmin(runtime, deps),
      adminTokens: parts,
      clock,
      log,
      mintRequestId,
    },
    routes,
  )
}

function webhookDeps(
  { config, clock, random }: Runtime,
  { storage, alerts }: OpenWebDeps,
  sealer: Sealer,
): WebDeps['webhooks'] {
  return {
    store: storage.store,
    clock,
    random,
    pepper: config.secrets.pepper,
    sealer,
    requiresHttps: config.mode === 'production',
    webhooksUrl: `${config.appUrl}/account/webhooks`,
    wake: () => alerts.wake(),
  }
}

function openLibrary({ config, clock, links }: Runtime): Library {
  const { appUrl, baseUrl } = config
  const writeRefusal: LibraryDeps['writeRefusal'] = (error) => writeExample(error, config, clock.nowMs())
  return new Library({ appUrl, baseUrl, links, writeRefusal })
}

function createLimiters(clock: Clock): WebDeps['limiters'] {
  return {
    mails: new RateLimiter(emailsPerWindow, limiterWindowMs, clock),
    tries: new RateLimiter(triesPerWindow, limiterWindowMs, clock),
    downloads: new RateLimiter(downloadsPerWindow, limiterWindowMs, clock),
    webhookTests: new RateLimiter(webhookTestsPerWindow, limiterWindowMs, clock),
  }
}

/** The public facts about the backends. */
function shownBackends(config: Pick<Config, 'mode' | 'backends'>): readonly ShownBackend[] {
  return publicBackends(config).map(({ id, provider, model, simulated, managed, facts }) => ({
    id,
    provider: provider.preset,
    model,
    simulated,
    managed,
    facts,
  }))
}

function storedResponses({ config, clock }: Runtime, { storage, stored }: OpenWebDeps): WebDeps['answers'] {
  return {
    list: (accountId, before, limit) =>
      storage.responses.listOf(accountId, clock.nowMs() - config.responseRetentionMs, before, limit),
    async open(accountId, id) {
      try {
        return { response: await stored.find(accountId, id), input: await stored.inputOf(accountId, id) }
      } catch (error) {
        if (error instanceof ServiceError && error.code === 'response_not_found') return undefined
        throw error
      }
    },
  }
}

function storedConversations(
  { config, clock }: Runtime,
  { storage, conversations }: OpenWebDeps,
): WebDeps['conversations'] {
  return {
    list: (accountId, before, limit) =>
      storage.conversations.listOf(accountId, clock.nowMs() - config.responseRetentionMs, before, limit),
    async open(accountId, id) {
      try {
        const { metadata } = await conversations.find(accountId, id)
        return { metadata, items: await conversations.itemsOf(accountId, id) }
      } catch (error) {
        if (error instanceof ServiceError && error.code === 'conversation_not_found') return undefined
        throw error
      }
    },
  }
}

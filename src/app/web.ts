import type { PlanSales } from '../accounts/billing/billing-deps.ts'
import { readVersion } from '../runtime/version.ts'
import type { SendMail } from '../accounts/ports.ts'
import { recentReadiness } from '../accounts/managed-access/managed-readiness.ts'
import type { RecentFailures } from '../accounts/status/recent-failures.ts'
import type { StatusBoard } from '../accounts/status/status-board.ts'
import { publicBackends, type Config } from '../config/config.ts'
import { sealingKeys } from '../config/sealing-keys.ts'
import type { Clock } from '../runtime/clock.ts'
import { ServiceError } from '../domain/errors.ts'
import type { EventLog } from '../domain/events.ts'
import { idMinter } from '../runtime/ids.ts'
import { linksFor } from '../domain/links.ts'
import { openApiDocument } from '../api-docs/openapi.ts'
import { openProviderErrors } from '../domain/provider-error.ts'
import type { RandomBytes } from '../runtime/random.ts'
import { priceBook } from '../domain/request-cost.ts'
import { createSealer } from '../runtime/sealer.ts'
import { formatById } from '../formats/formats.ts'
import type { Conversations } from '../gateway/responses/conversations.ts'
import type { StoredResponses } from '../gateway/responses/stored-responses.ts'
import type { Api } from '../http/api.ts'
import type { ManagedAccess } from '../gateway/ports.ts'
import type { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import { openOutbox } from '../simulation/mail-outbox.ts'
import { openConsole } from './console.ts'
import type { Providers } from './providers.ts'
import type { Storage } from './storage.ts'
import { writeExample } from './error-examples.ts'
import { openLeakedKeys, openScanning } from './leaked-keys.ts'
import { openUpstreamConnector } from './upstream-connector.ts'
import { Library } from '../web/docs/library.ts'
import { RateLimiter } from '../web/http/rate-limiter.ts'
import { routes } from '../web/routes.ts'
import { createWebApp } from '../web/web-app.ts'
import type { ShownBackend, WebDeps } from '../web/web-deps.ts'

/** What one address may do in ten minutes: enough for an office behind one, too little for guessing and for flooding. */
const limiterWindowMs = 10 * 60_000
const lettersPerWindow = 20
const triesPerWindow = 60
const downloadsPerWindow = 10
/** When a key was last used is looked up among so many of the account's latest requests. */
const lastUsesAmong = 2_000

export interface OpenWebDeps {
  readonly storage: Storage
  readonly stored: StoredResponses
  readonly conversations: Conversations
  readonly api: Api
  readonly sales: PlanSales
  readonly offers: WebDeps['offers']
  readonly status: StatusBoard
  readonly troubles: RecentFailures
  readonly breakers: CircuitBreakers
  readonly managed: ManagedAccess
  readonly mail: OpenedMail
  readonly providers: Providers
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: EventLog
}

/** The web app over the parts of the running service. */
export interface Web extends Disposable {
  readonly fetch: ReturnType<typeof createWebApp>
}

export function openWeb(config: Config, deps: OpenWebDeps): Web {
  const { storage, sales, providers, status, clock, random, log } = deps
  const { store } = storage
  const { pepper } = config.secrets
  const { close, ...mail } = deps.mail
  const { appUrl, baseUrl } = config
  const links = linksFor(appUrl)
  const sealer = createSealer({ ...sealingKeys(config.secrets), random })
  const leaks = openLeakedKeys(config, { storage, clock, random, sendMail: mail.sendMail })
  const fetch = createWebApp(
    {
      appUrl,
      baseUrl,
      mode: config.mode,
      trustedProxies: config.appListen.trustedProxies,
      plans: config.plans,
      sales,
      offers: deps.offers,
      prices: (upstreams) => priceBook(config.backends, upstreams, config.modelFacts),
      defaultPlan: config.defaultPlan,
      ...mail,
      limiters: {
        mails: new RateLimiter(lettersPerWindow, limiterWindowMs, clock),
        tries: new RateLimiter(triesPerWindow, limiterWindowMs, clock),
        downloads: new RateLimiter(downloadsPerWindow, limiterWindowMs, clock),
      },
      async usageOf({ id, planId }) {
        const plan = config.plans.find((known) => known.id === planId)
        return plan === undefined ? undefined : storage.ledger.signals(id, plan)
      },
      lastUses: (accountId) => store.lastKeyUses(accountId, lastUsesAmong),
      activity: store,
      providerErrors: async (accountId, requestId) =>
        openProviderErrors(sealer, await store.listProviderErrors(requestId, accountId)),
      accountData: { store, clock, random, pepper },
      records: store,
      answers: keptAnswers(config, deps),
      conversations: keptConversations(config, deps),
      upstreams: openUpstreamConnector(config, providers, random),
      status,
      support: { store, clock, random, mailTo: config.mail?.support, sendMail: mail.sendMail },
      managed: { store, readiness: recentReadiness({ store, proveQuotas: () => storage.proveQuotas(), clock }) },
      leaks,
      takeScanningReport: openScanning(config, { providers, leaks, clock, log }),
      profiles: config.profiles,
      backends: shownBackends(config),
      async latestRequest(accountId) {
        const [latest] = await store.listRequests({ accountId, limit: 1 })
        return latest
      },
      answerChat: (account, { request, response }) => {
        request.url = `/v1${formatById('openai-chat').path}`
        deps.api.handle(request, response, { caller: account })
      },
      library: new Library({
        appUrl,
        baseUrl,
        links,
        writeRefusal: (error) => writeExample(error, config, clock.nowMs()),
      }),
      openApi: openApiDocument({ baseUrl, links, version: readVersion() }),
      control: { store, clock, random, pepper },
      identity: { store, clock, random, pepper },
      operators: { store: store.operators, clock, random, pepper },
      desk: openConsole(config, deps),
      clock,
      log,
      mintRequestId: idMinter('req_', () => clock.nowMs(), random),
    },
    routes,
  )
  return { fetch, [Symbol.dispose]: close }
}

/** What everybody may see of the backends. */
function shownBackends(config: Config): readonly ShownBackend[] {
  return publicBackends(config).map(({ id, provider, simulated, facts }) => ({
    id,
    provider: provider.preset,
    simulated,
    facts,
  }))
}

/** Answers are listed as they are stored, and opened by who sealed them. */
function keptAnswers(config: Config, { storage, stored, clock }: OpenWebDeps): WebDeps['answers'] {
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

function keptConversations(config: Config, { storage, conversations, clock }: OpenWebDeps): WebDeps['conversations'] {
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

/** The mail server; in local mode without one the outbox; in production without one nothing. */
/** What sends letters, or keeps them where nobody does. */
export interface OpenedMail extends Pick<WebDeps, 'sendMail' | 'outbox'> {
  readonly close: () => void
}

/** Opened before anything listens, because a library may have to be read for it. */
export async function openMail(config: Config, clock: Clock, log: EventLog): Promise<OpenedMail> {
  if (config.mail !== undefined) {
    // Read only where letters are sent: it takes memory that most have no use for.
    const { openSmtp } = await import('../mail/smtp.ts')
    const smtp = openSmtp(config.mail, log)
    return { sendMail: smtp.send satisfies SendMail, outbox: undefined, close: () => smtp.close() }
  }
  if (config.mode === 'production') return { sendMail: undefined, outbox: undefined, close: () => {} }
  const outbox = openOutbox(clock)
  return { sendMail: outbox.send, outbox, close: () => {} }
}

import type { Offer as PlanOffer } from '../../domain/billing.ts'
import { clientFormatIds, completionsFormatId, embeddingsFormatId } from '../../domain/format-id.ts'
import type { Links } from '../../domain/links.ts'
import { capabilityIds, factsOfAll, type ModelFacts } from '../../domain/model-facts.ts'
import type { Plan } from '../../domain/plans.ts'
import { profileNamed, type Profile } from '../../domain/profiles.ts'
import { formatById } from '../../formats/formats.ts'
import { unknownProfile } from '../../gateway/auth/unknown-profile.ts'
import type { ServedProfile } from '../../gateway/gateway.ts'
import { codexModel, displayName } from './codex-model.ts'

export interface CatalogDeps {
  readonly baseUrl: string
  readonly links: Links
  readonly plans: readonly Plan[]
  readonly profiles: readonly Profile[]
  /** The configured backends, and what is known about them. */
  readonly backends: readonly { readonly id: string; readonly simulated: boolean; readonly facts: ModelFacts }[]
  /** Whether a managed backend may serve approved accounts now (contract 23.3). */
  readonly isManagedAccessOn: () => boolean
  /** The prices of plans that are sold. */
  readonly offers: () => Promise<readonly PlanOffer[]>
  /** Epoch seconds since which the profiles exist, for the list's `created`. */
  readonly createdAt: number
}

/** A profile and the backends that serve it. */
type Offer = Pick<ServedProfile, 'profile' | 'backends'>

/** The lists that describe the service, derived from the same tables that are enforced (contract 5.13). */
export class Catalog {
  readonly #deps: CatalogDeps

  constructor(deps: CatalogDeps) {
    this.#deps = deps
  }

  /**
   * `GET /v1/models` for one account, in one list for all clients: OpenAI's read `data`, Anthropic's read `data` with
   * the page fields around it, and Codex reads `models` (contract 17.1).
   */
  models(served: readonly Offer[], plan: Plan): object {
    const conversing = served.filter(({ profile }) => profile.embeddings === undefined)
    return {
      object: 'list',
      data: served.map((one) => this.#entry(one, plan)),
      has_more: false,
      first_id: served[0]?.profile.id ?? null,
      last_id: served.at(-1)?.profile.id ?? null,
      models: conversing.map(({ profile, backends }, index) => codexModel(profile, index, factsOfAll(backends))),
    }
  }

  /**
   * `GET /v1/models/{id}`: the same entry as in the list, under the requested name (contract 17.5).
   * @throws ServiceError `model_not_found`
   */
  model(id: string, served: readonly Offer[], plan: Plan): object {
    const profiles = served.map(({ profile }) => profile)
    const profile = profileNamed(id, profiles)
    const found = served.find((one) => one.profile === profile)
    if (found === undefined) throw unknownProfile(id, profiles)
    return { ...this.#entry(found, plan), id }
  }

  #entry({ profile, backends }: Offer, plan: Plan): object {
    const { createdAt } = this.#deps
    const { id, premium } = profile
    return {
      id,
      object: 'model',
      created: createdAt,
      owned_by: 'svc-router',
      // For Anthropic's clients.
      type: 'model',
      display_name: displayName(id),
      created_at: new Date(createdAt * 1000).toISOString(),
      ...this.#described(profile, factsOfAll(backends)),
      entitled: plan.premium || !premium,
    }
  }

  /** The description of a profile, the same everywhere. Unknown facts are left out (contract 17.2). */
  #described(profile: Profile, facts: ModelFacts): object {
    const { description, premium, quotaUnits, embeddings, price } = profile
    const { plans } = this.#deps
    const formats = embeddings === undefined ? [...clientFormatIds, completionsFormatId] : [embeddingsFormatId]
    return {
      description,
      kind: embeddings === undefined ? 'conversation' : 'embeddings',
      endpoints: formats.map((format) => `/v1${formatById(format).path}`),
      ...(embeddings === undefined ? {} : { vectors: embeddings }),
      ...(facts.contextWindow === undefined ? {} : { context_window: facts.contextWindow }),
      ...(facts.maxOutputTokens === undefined ? {} : { max_output_tokens: facts.maxOutputTokens }),
      capabilities: { streaming: { supported: embeddings === undefined }, ...capabilitiesOf(facts) },
      premium,
      plans: plans.filter((plan) => plan.premium || !premium).map((plan) => plan.id),
      quota_units: quotaUnits,
      ...(price === undefined
        ? {}
        : {
            price: {
              currency: price.currency,
              input_per_million: price.inputPerMillion,
              ...(price.outputPerMillion === undefined ? {} : { output_per_million: price.outputPerMillion }),
            },
          }),
    }
  }

  /** The configured backends of a profile; simulated ones only if there are no others, as when it is used. */
  #factsOf(profile: Profile): ModelFacts {
    const all = this.#deps.backends.filter(({ id }) => profile.backends.includes(id))
    const real = all.filter(({ simulated }) => !simulated)
    return factsOfAll((real.length > 0 ? real : all).map(({ facts }) => facts))
  }

  /** `GET /model-catalog`: for discovery only; using the models requires a key (contract 17.6). */
  modelCatalog(): object {
    const { baseUrl, links, profiles } = this.#deps
    return {
      object: 'model_catalog',
      note: 'For discovery only: GET /v1/models and model requests need an active API key.',
      base_url: baseUrl,
      accountSetupUrl: links.accountSetupUrl,
      profiles: profiles.map((profile) => ({
        id: profile.id,
        ...this.#described(profile, this.#factsOf(profile)),
        streaming: profile.embeddings === undefined,
      })),
    }
  }

  /** `GET /pricing`: plans, limits, how to read the rate limit signals, and whether managed access is on (contract 17.7). */
  async pricing(): Promise<object> {
    const { baseUrl, links, plans, profiles } = this.#deps
    const offers = await this.#deps.offers()
    return {
      object: 'pricing',
      base_url: baseUrl,
      checkout_path: new URL(links.upgradeUrl).pathname,
      upgradeUrl: links.upgradeUrl,
      billingUrl: links.billingUrl,
      supportUrl: links.supportUrl,
      plans: plans.map(({ id, name, requestsPerMinute, requestsPerMonth, premium, fusionsAtOnce }) => ({
        id,
        name,
        requests_per_minute: requestsPerMinute,
        requests_per_month: requestsPerMonth,
        premium,
        ...(premium && fusionsAtOnce !== undefined ? { fusions_at_once: fusionsAtOnce } : {}),
        ...priceOf(offers, id),
      })),
      profiles: profiles.map(({ id, premium, quotaUnits }) => ({ id, premium, quota_units: quotaUnits })),
      quota: { period: 'month', resets: 'at 00:00 UTC on the first day of each month', unit: 'request' },
      signals: {
        'X-RateLimit-Reset': 'unix seconds',
        'X-Quota-Reset': 'unix seconds',
        'Retry-After': 'seconds, 1 to 60',
      },
      launch_boundary: {
        managed_access: this.#deps.isManagedAccessOn() ? 'enabled' : 'disabled',
        managedAccessUrl: links.managedAccessUrl,
        note: "By default, requests use the account's own provider credentials. While managed access is enabled, accounts that the operator approved can also use the operator's credentials. Request a review at managedAccessUrl.",
      },
    }
  }
}

/** The price of a plan; empty if it is not sold or its price is unknown. */
function priceOf(offers: readonly PlanOffer[], plan: string): object {
  const price = offers.find(({ planId }) => planId === plan)?.price
  if (price == null) return {}
  const { currency, minorUnits, interval, intervalCount } = price
  return { price: { currency, minor_units: minorUnits, interval, interval_count: intervalCount } }
}

/** Capabilities in the form of Anthropic's list. */
function capabilitiesOf({ capabilities = {} }: ModelFacts): Record<string, { supported: boolean }> {
  const known: Record<string, { supported: boolean }> = {}
  for (const id of capabilityIds) {
    const supported = capabilities[id]
    if (supported !== undefined) known[id] = { supported }
  }
  return known
}

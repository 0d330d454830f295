import type { Links } from '../domain/links.ts'
import type { Plan } from '../domain/plans.ts'
import { clientFormatIds } from '../domain/format-id.ts'
import type { Profile } from '../domain/profiles.ts'
import { formatById } from '../formats/formats.ts'

export interface CatalogParts {
  readonly baseUrl: string
  readonly links: Links
  readonly plans: readonly Plan[]
  readonly profiles: readonly Profile[]
  /** How much the configured backends take, in tokens, where it is known. */
  readonly backends: readonly { readonly id: string; readonly contextWindow: number | undefined }[]
  /** Epoch seconds from which the profiles exist, for the list's `created`. */
  readonly createdAt: number
}

/** What clients may assume of a profile whose backends do not say: the smallest of today's frontier models. */
const assumedContextWindow = 200_000

/** The lists that describe the service, derived from the same tables that are enforced (contract 4.5). */
export class Catalog {
  readonly #parts: CatalogParts

  constructor(parts: CatalogParts) {
    this.#parts = parts
  }

  /** `GET /v1/models`: the compatible list in `data`, and in `models` the one that Codex reads. */
  models(): object {
    const { profiles, createdAt } = this.#parts
    return {
      object: 'list',
      data: profiles.map(({ id }) => ({ id, object: 'model', created: createdAt, owned_by: 'svc-router' })),
      models: profiles.map((profile, index) => codexModel(profile, index, this.#contextWindow(profile))),
    }
  }

  /** The smallest that is known: a conversation that fits into it can go to every backend that says its size. */
  #contextWindow(profile: Profile): number {
    const known = this.#parts.backends
      .filter(({ id }) => profile.backends.includes(id))
      .flatMap(({ contextWindow }) => contextWindow ?? [])
    return known.length === 0 ? assumedContextWindow : Math.min(...known)
  }

  /** `GET /model-catalog`: what there is. Discovery only; using it takes a key (spec 4). */
  modelCatalog(): object {
    const { baseUrl, links, profiles, plans } = this.#parts
    return {
      object: 'model_catalog',
      note: 'For discovery only: GET /v1/models and model requests need an active generated key.',
      base_url: baseUrl,
      accountSetupUrl: links.accountSetupUrl,
      profiles: profiles.map(({ id, description, premium, quotaUnits }) => ({
        id,
        description,
        premium,
        quota_units: quotaUnits,
        plans: plans.filter((plan) => plan.premium || !premium).map((plan) => plan.id),
        endpoints: clientFormatIds.map((format) => `/v1${formatById(format).path}`),
        streaming: true,
      })),
    }
  }

  /** `GET /pricing`: plans, limits, how the signals are to be read, and what is not offered (spec 4). */
  pricing(): object {
    const { baseUrl, links, plans } = this.#parts
    return {
      object: 'pricing',
      base_url: baseUrl,
      checkout_path: new URL(links.upgradeUrl).pathname,
      upgradeUrl: links.upgradeUrl,
      billingUrl: links.billingUrl,
      supportUrl: links.supportUrl,
      plans: plans.map(({ id, name, requestsPerMinute, requestsPerMonth, premium }) => ({
        id,
        name,
        requests_per_minute: requestsPerMinute,
        requests_per_month: requestsPerMonth,
        premium,
      })),
      quota: { period: 'month', resets: 'at 00:00 UTC on the first day of each month', unit: 'request' },
      signals: {
        'X-RateLimit-Reset': 'unix seconds',
        'X-Quota-Reset': 'unix seconds',
        'Retry-After': 'seconds, 1 to 60',
      },
      launch_boundary: {
        managed_access: 'disabled',
        managedAccessUrl: links.managedAccessUrl,
        note: "Requests run on the account's own provider credentials. Provider access through the service is reviewed and off.",
      },
    }
  }
}

/** One entry of the list that Codex decodes: it wants every one of these fields. */
function codexModel({ id, description }: Profile, index: number, contextWindow: number): object {
  return {
    slug: id,
    display_name: id.replace('/', ' '),
    description,
    default_reasoning_level: 'medium',
    supported_reasoning_levels: ['low', 'medium', 'high'].map((effort) => ({ effort, description: effort })),
    shell_type: 'unified_exec',
    visibility: 'list',
    supported_in_api: true,
    priority: index + 1,
    availability_nux: null,
    upgrade: null,
    base_instructions: 'You are a coding agent that works in the terminal of the person who runs you.',
    supports_reasoning_summaries: true,
    default_reasoning_summary: 'none',
    support_verbosity: false,
    default_verbosity: null,
    apply_patch_tool_type: 'freeform',
    truncation_policy: { mode: 'tokens', limit: 10_000 },
    supports_parallel_tool_calls: true,
    context_window: contextWindow,
    max_context_window: contextWindow,
    effective_context_window_percent: 95,
    experimental_supported_tools: [],
    input_modalities: ['text', 'image'],
  }
}

import type { Config } from '../config/config.ts'
import type { Upstream } from '../domain/accounts.ts'
import type { UsdPerMillion } from '../domain/model-facts.ts'
import type { Profile } from '../domain/profiles.ts'
import type { ReplayOptions, ReplayReport } from '../domain/replay.ts'
import { priceBook, type FindPrice } from '../domain/request-cost.ts'
import type { RequestRecord } from '../domain/requests.ts'
import { routingFor } from '../domain/routing-policy.ts'
import type { Backend } from '../gateway/ports.ts'
import type { ReplayPolicy } from '../gateway/replay/replay-run.ts'
import { replay } from '../gateway/replay/replay.ts'
import { withoutFiltered } from '../gateway/routing/routing-filters.ts'
import type { Store } from '../storage/store.ts'
import { openProvidersAlone } from './routing-planner.ts'
import { createRuntime, type Runtime } from './runtime.ts'
import { openStore } from './storage.ts'

/** Records that are read from the database at once. */
const pageSize = 1_000
/** The results of a replay are the same each time. */
const seed = 1

/** Replays the records of one profile under another policy (contract 33.12). Reads the database and calls no backend. */
export async function replayAlone(runtime: Runtime, options: ReplayOptions): Promise<ReplayReport> {
  const { policy, assumesCapacity } = options
  const { config } = runtime
  await using opened = new AsyncDisposableStack()
  const store = await openStore(config)
  opened.defer(() => store.close())
  const records = await readRecords(store, options)
  const accounts = [...new Set(records.map(({ accountId }) => accountId))]
  const configured = config.profiles.find(({ id }) => id === policy.id)!
  const own: Upstream[] = []
  for (const account of accounts) own.push(...(await store.listUpstreams(account)))
  return replay({
    profile: policy.id,
    records,
    configured: await policyOf(runtime, store, configured, accounts),
    policy: await policyOf(withProfile(runtime, policy), store, policy, accounts),
    priceOf: onceEach(priceBook(config.backends, own, config.modelFacts)),
    seed,
    assumesCapacity,
  })
}

/** Oldest first. */
async function readRecords(store: Store, { policy, sinceMs, limit }: ReplayOptions): Promise<RequestRecord[]> {
  const records: RequestRecord[] = []
  for (;;) {
    const beforeId = records.at(-1)?.id
    const most = Math.min(pageSize, limit - records.length)
    const selection = { limit: most, profile: policy.id, sinceMs, ...(beforeId === undefined ? {} : { beforeId }) }
    const page = most === 0 ? [] : await store.listRequests(selection)
    records.push(...page)
    if (page.length < pageSize) return records.toSorted((a, b) => a.admittedAtMs - b.admittedAtMs)
  }
}

function withProfile(runtime: Runtime, policy: Profile): Runtime {
  const { config } = runtime
  const profiles = config.profiles.map((profile) => (profile.id === policy.id ? policy : profile))
  const changed: Config = { ...config, profiles }
  return createRuntime(changed, runtime)
}

/** Looks up each price once: the book searches lists. */
function onceEach(find: FindPrice): FindPrice {
  const found = new Map<string, UsdPerMillion | undefined>()
  return (id) => {
    if (!found.has(id)) found.set(id, find(id))
    return found.get(id)
  }
}

/** The backends that each account has under a policy, found once. */
async function policyOf(
  runtime: Runtime,
  store: Store,
  { id, routing: given }: Profile,
  accounts: readonly string[],
): Promise<ReplayPolicy> {
  await using providers = await openProvidersAlone(runtime, store)
  const routing = routingFor(given, undefined)
  const found = new Map<string, readonly Backend[]>()
  for (const account of accounts)
    found.set(account, withoutFiltered(await providers.backends.forProfile(id, account), routing))
  return { routing, backendsFor: (account) => found.get(account) ?? [] }
}

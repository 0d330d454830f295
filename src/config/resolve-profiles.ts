import { fusionId, frontierId, type FusionDefaults, type Price, type Profile } from '../domain/profiles.ts'
import type { PriceCap, RoutingPolicy } from '../domain/routing-policy.ts'
import { suggest } from './check-shape.ts'
import type { BackendConfig } from './config.ts'
import type { Findings } from './findings.ts'
import type { ConfigFile } from './schema.ts'

type GivenProfile = NonNullable<ConfigFile['profiles']>[string]
type GivenFusion = NonNullable<NonNullable<ConfigFile['profiles']>[string]['fusion']>

const frontierDescription =
  'The default profile. It sends each request to one of its models and, if that fails, to the next one.'
const fusionDescription =
  'Several models answer, one compares the answers, and you get one reply. Takes longer than one model.'

/**
 * The profiles: `svc-router/frontier` first, with every backend by default; then `svc-router/fusion`, with the same
 * backends.
 */
export function resolveProfiles(file: ConfigFile, backends: readonly BackendConfig[], findings: Findings): Profile[] {
  const known = [...new Set([...findings.names('backends'), ...backends.map((backend) => backend.id)])]
  /** The names that fusion settings can use for models. */
  const namesKnown = [...known, ...backends.map(({ model }) => model), ...Object.keys(file.models ?? {})]
  const given = Object.entries(file.profiles ?? {})
  const profiles = given.map(([id, profile]): Profile => {
    if (id === fusionId && profile.premium === false)
      findings.add(['profiles', id, 'premium'], `${fusionId} is always premium`, 'remove it')
    checkListed(id, profile.backends ?? [], known, findings)
    const embeddings = embeddingsOf(id, profile.backends ?? [], backends, findings)
    return {
      id,
      description: profile.description ?? '',
      backends: profile.backends ?? [],
      ...(id === fusionId && profile.backends === undefined ? { isLikeFrontier: true } : {}),
      premium: profile.premium ?? id === fusionId,
      quotaUnits: profile.quota_units ?? 1,
      ...(profile.reports_model === true ? { reportsModel: true } : {}),
      ...(profile.reports_cost === true ? { reportsCost: true } : {}),
      ...(profile.cache?.marks === 'off' ? { leavesMarks: true } : {}),
      ...(embeddings === undefined ? {} : { embeddings }),
      ...(profile.price === undefined ? {} : { price: resolvePrice(profile.price) }),
      ...(profile.routing === undefined
        ? {}
        : { routing: resolveRouting(id, profile.routing, { known, names: namesKnown }, findings) }),
      ...(profile.fusion === undefined ? {} : { fusion: resolveFusion(id, profile.fusion, namesKnown, findings) }),
    }
  })
  const others = profiles.filter(({ id }) => id !== frontierId && id !== fusionId)
  const conversing = known.filter((id) => backends.find((backend) => backend.id === id)?.embeddings === undefined)
  const frontier: Profile = profiles.find(({ id }) => id === frontierId) ?? {
    id: frontierId,
    description: frontierDescription,
    backends: conversing,
    premium: false,
    quotaUnits: 1,
  }
  const fusion: Profile = profiles.find(({ id }) => id === fusionId) ?? {
    id: fusionId,
    description: fusionDescription,
    backends: [],
    isLikeFrontier: true,
    premium: true,
    quotaUnits: 1,
  }
  return [frontier, fusion.isLikeFrontier === true ? likeFrontier(fusion, frontier) : fusion, ...others]
}

/** A known profile with other backends, if given, and another policy (contract 33.12). */
export function resolvePolicy(
  profile: Profile,
  { backends, routing }: Pick<GivenProfile, 'backends' | 'routing'>,
  configured: readonly BackendConfig[],
  findings: Findings,
): Profile {
  const known = configured.map(({ id }) => id)
  checkListed(profile.id, backends ?? [], known, findings)
  const { routing: _, ...rest } = profile
  const names = { known, names: [...known, ...configured.map(({ model }) => model)] }
  return {
    ...rest,
    ...(backends === undefined ? {} : { backends }),
    ...(routing === undefined ? {} : { routing: resolveRouting(profile.id, routing, names, findings) }),
  }
}

function checkListed(id: string, listed: readonly string[], known: readonly string[], findings: Findings): void {
  const seen = new Set<string>()
  for (const [index, backend] of listed.entries()) {
    const path = ['profiles', id, 'backends', index]
    if (!known.includes(backend)) findings.add(path, `there is no backend "${backend}"`, suggest(backend, known))
    else if (seen.has(backend))
      findings.add(path, `the backend "${backend}" is listed twice`, 'list it once: each backend is tried once')
    seen.add(backend)
  }
}

/** With the same backends and, unless it has its own, the same requirements. */
function likeFrontier(fusion: Profile, { backends, routing }: Profile): Profile {
  return { ...fusion, backends, ...(fusion.routing !== undefined || routing === undefined ? {} : { routing }) }
}

/**
 * The name of a profile's embedding vectors; undefined for conversations. All its backends must return the same
 * vectors, because clients cannot compare vectors of different models after a failover (contract 2.39).
 */
function embeddingsOf(
  id: string,
  listed: readonly string[],
  backends: readonly BackendConfig[],
  findings: Findings,
): string | undefined {
  const found = listed.map((name) => backends.find((backend) => backend.id === name))
  const first = found.find((backend) => backend !== undefined)
  for (const [index, backend] of found.entries()) {
    if (first === undefined || backend === undefined || backend.embeddings === first.embeddings) continue
    const gives = (name: string | undefined): string =>
      name === undefined ? 'serves conversations' : `creates embeddings "${name}"`
    findings.add(
      ['profiles', id, 'backends', index],
      `"${backend.id}" ${gives(backend.embeddings)} and "${first.id}" ${gives(first.embeddings)}: neither can replace the other`,
      'put each kind in its own profile',
    )
  }
  if ((id === frontierId || id === fusionId) && first?.embeddings !== undefined)
    findings.add(
      ['profiles', id, 'backends'],
      `${id} is for conversations and cannot create embeddings`,
      'use a profile with another name, such as svc-router/embeddings',
    )
  return first?.embeddings
}

function resolvePrice(given: NonNullable<NonNullable<ConfigFile['profiles']>[string]['price']>): Price {
  const { currency, input_per_million: inputPerMillion, output_per_million: outputPerMillion } = given
  return { currency, inputPerMillion, ...(outputPerMillion === undefined ? {} : { outputPerMillion }) }
}

/** The routing settings of a profile. Every named backend must be known, so that typos are found at startup. */
function resolveRouting(
  id: string,
  given: NonNullable<GivenProfile['routing']>,
  { known, names }: { readonly known: readonly string[]; readonly names: readonly string[] },
  findings: Findings,
): RoutingPolicy {
  const path = ['profiles', id, 'routing']
  const { sort, order, weights, max_price: price, regions, zero_retention: zeroRetention } = given
  const { hedge, sticky, rescue } = given
  for (const [index, name] of (order ?? []).entries())
    if (!names.includes(name))
      findings.add([...path, 'order', index], `there is no backend or model "${name}"`, suggest(name, names))
  for (const name of Object.keys(weights ?? {}))
    if (!known.includes(name))
      findings.add([...path, 'weights', name], `there is no backend "${name}"`, suggest(name, known), 'name')
  if (weights !== undefined && (sort ?? 'order') === 'order')
    findings.add(
      [...path, 'weights'],
      'weights have no effect while backends are tried in order',
      'add "sort: balanced", or remove them',
      'name',
    )
  return {
    ...(sort === undefined ? {} : { sort }),
    ...(order === undefined ? {} : { order }),
    ...(weights === undefined ? {} : { weights }),
    ...(price === undefined ? {} : { maxPrice: withoutAbsent(price) }),
    ...(regions === undefined ? {} : { regions: regions.map((region) => region.toLowerCase()) }),
    ...(zeroRetention === undefined ? {} : { zeroRetention }),
    ...(hedge === undefined ? {} : { hedge }),
    ...(sticky === undefined ? {} : { sticky }),
    ...(rescue === undefined ? {} : { rescue }),
  }
}

function withoutAbsent({ input, output }: { input?: number | undefined; output?: number | undefined }): PriceCap {
  return { ...(input === undefined ? {} : { input }), ...(output === undefined ? {} : { output }) }
}

/** The fusion settings of a profile. Every named model must be known, so that typos are found at startup. */
function resolveFusion(id: string, given: GivenFusion, known: readonly string[], findings: Findings): FusionDefaults {
  const path = ['profiles', id, 'fusion']
  if (id !== fusionId)
    findings.add(path, `only ${fusionId} can have fusion settings`, `move it to ${fusionId}, or remove it`, 'name')
  const { preset, panel_size: panelSize, models: panelModels, judge: judgeModel, names_models: namesModels } = given
  const check = (name: string, subpath: readonly PropertyKey[]): void => {
    if (known.includes(name)) return
    const near = suggest(name, known)
    findings.add([...path, ...subpath], `there is no backend or model "${name}"`, `${near}, or add it to models`)
  }
  for (const [index, name] of (panelModels ?? []).entries()) check(name, ['models', index])
  if (judgeModel !== undefined) check(judgeModel, ['judge'])
  if (panelModels !== undefined && panelSize !== undefined)
    findings.add([...path, 'panel_size'], '"models" already determines how many models answer', 'remove one of the two')
  return {
    ...(preset === undefined ? {} : { preset }),
    ...(panelSize === undefined ? {} : { panelSize }),
    ...(panelModels === undefined ? {} : { panelModels }),
    ...(judgeModel === undefined ? {} : { judgeModel }),
    ...(namesModels === undefined ? {} : { namesModels }),
  }
}

import { fusionId, frontierId, type Price, type Profile } from '../domain/profiles.ts'
import { suggest } from './check-shape.ts'
import type { BackendConfig } from './config.ts'
import type { Findings } from './findings.ts'
import type { ConfigFile } from './schema.ts'

const frontierDescription = 'The profile to use first: the backends in order, the next one when one fails.'

/** The profiles, `svc-router/frontier` first, over every backend unless the file defines it. */
export function resolveProfiles(file: ConfigFile, backends: readonly BackendConfig[], findings: Findings): Profile[] {
  const known = [...new Set([...findings.names('backends'), ...backends.map((backend) => backend.id)])]
  const given = Object.entries(file.profiles ?? {})
  const profiles = given.map(([id, profile]): Profile => {
    if (id === fusionId)
      findings.add(
        ['profiles', id],
        `${fusionId} cannot be configured yet: it is premium and not served`,
        'remove it',
        'name',
      )
    const seen = new Set<string>()
    for (const [index, backend] of (profile.backends ?? []).entries()) {
      const path = ['profiles', id, 'backends', index]
      if (!known.includes(backend)) findings.add(path, `there is no backend "${backend}"`, suggest(backend, known))
      else if (seen.has(backend))
        findings.add(path, `the backend "${backend}" is listed twice`, 'list it once: each backend is tried once')
      seen.add(backend)
    }
    const embeddings = embeddingsOf(id, profile.backends ?? [], backends, findings)
    return {
      id,
      description: profile.description ?? '',
      backends: profile.backends ?? [],
      premium: profile.premium ?? false,
      quotaUnits: profile.quota_units ?? 1,
      ...(embeddings === undefined ? {} : { embeddings }),
      ...(profile.price === undefined ? {} : { price: resolvePrice(profile.price) }),
    }
  })
  const frontier = profiles.find((profile) => profile.id === frontierId)
  const others = profiles.filter((profile) => profile.id !== frontierId)
  const conversing = known.filter((id) => backends.find((backend) => backend.id === id)?.embeddings === undefined)
  return [
    frontier ?? {
      id: frontierId,
      description: frontierDescription,
      backends: conversing,
      premium: false,
      quotaUnits: 1,
    },
    ...others,
  ]
}

/**
 * The vectors that a profile gives, or undefined where it holds conversations. All of its backends must give the same:
 * a failover to others would hand callers vectors that they cannot compare with those they have.
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
      name === undefined ? 'holds conversations' : `gives embeddings "${name}"`
    findings.add(
      ['profiles', id, 'backends', index],
      `"${backend.id}" ${gives(backend.embeddings)} and "${first.id}" ${gives(first.embeddings)}: they cannot stand in for each other`,
      'give each kind a profile of its own',
    )
  }
  if (id === frontierId && first?.embeddings !== undefined)
    findings.add(
      ['profiles', id, 'backends'],
      `${frontierId} is for conversations and cannot give embeddings`,
      'use a profile of another name, such as svc-router/embeddings',
    )
  return first?.embeddings
}

function resolvePrice(given: NonNullable<NonNullable<ConfigFile['profiles']>[string]['price']>): Price {
  const { currency, input_per_million: inputPerMillion, output_per_million: outputPerMillion } = given
  return { currency, inputPerMillion, ...(outputPerMillion === undefined ? {} : { outputPerMillion }) }
}

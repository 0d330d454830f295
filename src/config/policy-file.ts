import { z } from 'zod'
import type { Profile } from '../domain/profiles.ts'
import { checkShape, suggest } from './check-shape.ts'
import type { Config } from './config.ts'
import { readDocument } from './document.ts'
import { Findings } from './findings.ts'
import { ConfigError, type Problem } from './problems.ts'
import { resolvePolicy } from './resolve-profiles.ts'
import { settingSchemas } from './schema.ts'
import { group } from './settings.ts'

/** Bytes of a file. */
export const maxPolicyBytes = 1024 ** 2
const maxProblems = 100

/** Profiles as in the configuration file. A file for `svc-router apply` with nothing else is one, too. */
const policySchema = group({
  version: z.literal(1, { error: 'expected 1, the version of this format' }).optional(),
  profiles: settingSchemas.profiles,
})

/**
 * The profiles of a policy file (contract 33.12): those of the configuration with the backends and the routing of the
 * file. @throws ConfigError with all problems and their positions
 */
export function readPolicyFile(
  name: string,
  text: string,
  { profiles, backends }: Pick<Config, 'profiles' | 'backends'>,
): readonly Profile[] {
  const document = readDocument(text)
  if (document.problems.length > 0) throw invalid(name, document.problems)
  const { file, problems } = checkShape(document, policySchema, maxProblems)
  if (problems.length > 0) throw invalid(name, problems)
  const findings = new Findings(document, {}, false)
  const found = Object.entries(file.profiles).flatMap(([id, given]) => {
    const profile = profiles.find((known) => known.id === id)
    if (profile !== undefined) return [resolvePolicy(profile, given, backends, findings)]
    const known = profiles.map((one) => one.id)
    findings.add(['profiles', id], `there is no profile "${id}" in the configuration`, suggest(id, known), 'name')
    return []
  })
  if (findings.problems.length > 0) throw invalid(name, findings.problems)
  return found
}

function invalid(name: string, problems: readonly Problem[]): ConfigError {
  return new ConfigError(name, problems.slice(0, maxProblems), 'declaration')
}

import { readFileSync, statSync } from 'node:fs'
import type { RandomBytes } from '../runtime/random.ts'
import { SetupError } from '../runtime/setup-error.ts'
import { checkShape, isKnown } from './check-shape.ts'
import type { Config } from './config.ts'
import { readDocument } from './document.ts'
import { Findings, type Environment } from './findings.ts'
import { ConfigError, type Problem } from './problems.ts'
import { completeSecrets, resolve, type GivenSecrets, type Overrides } from './resolve.ts'
import { configSchema } from './schema.ts'
import { makeKeptSecrets, readKeptSecrets, type KeptSecrets } from './secrets.ts'
import { settingsSource } from './settings-source.ts'

/** The configuration file that is read if `--config` is not given. */
export const defaultConfigPath = './svc-router.yaml'
const maxFileBytes = 1024 * 1024

/** Where a configuration comes from. */
export interface ConfigSource {
  readonly path: string
  /** Whether the user gave the path. If so, the file must exist. */
  readonly explicit: boolean
  /** The content of the file, if another process has already read it. If set, the file is not read. */
  readonly given?: { readonly text: string | undefined } | undefined
  readonly overrides: Overrides
  readonly env: Environment
  readonly random: RandomBytes
  /** `make` stores the secrets that local mode generates in the data folder; `pretend` writes nothing, for checks. */
  readonly localSecrets: 'make' | 'pretend'
  /**
   * Whether every environment variable with a backend's credential must be set. Default true. If false, backends whose
   * variable is not set have no credential, so no backend may be called.
   */
  readonly needsCredentials?: boolean
}

/** Builds the Config from the file and the environment (contract 31.2). @throws ConfigError with all problems and their positions */
export function loadConfig(source: ConfigSource): Config {
  const text = source.given === undefined ? readText(source) : source.given.text
  const name = text === undefined ? undefined : source.path
  const document = readDocument(text ?? '')
  if (document.problems.length > 0) throw new ConfigError(name, document.problems)
  const { file, problems } = checkShape(document, configSchema)
  const findings = new Findings(document, source.env, source.needsCredentials ?? true)
  const { given, ...rest } = resolve(file, name, source.overrides, findings)
  const all = [...problems, ...findings.problems.filter((problem) => !isKnown(problem, problems))]
  if (all.length > 0) throw new ConfigError(name, inOrder(all))
  const secrets = completeSecrets(given, keptSecrets(given, rest.dataDir, source))
  if (secrets === undefined)
    throw new ConfigError(name, [placeless('secrets are missing', 'set SVC_ROUTER_PEPPER and SVC_ROUTER_SEALING_KEY')])
  const needsCredentials = source.needsCredentials ?? true
  return {
    ...rest,
    fileText: text,
    secrets,
    settings: settingsSource({ file, mode: rest.mode, env: source.env, needsCredentials }),
  }
}

function readText({ path, explicit }: ConfigSource): string | undefined {
  try {
    if (statSync(path).size > maxFileBytes)
      throw new ConfigError(path, [
        placeless('the configuration file is larger than 1MiB', 'specify another file with --config FILE'),
      ])
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    if (code === 'ENOENT' && !explicit) return undefined
    const what = code === 'ENOENT' ? `there is no file ${path}` : `${path} cannot be read (${code})`
    throw new ConfigError(undefined, [
      placeless(what, 'specify an existing file with --config FILE, or omit --config to use the defaults'),
    ])
  }
}

function keptSecrets(given: GivenSecrets, dataDir: string, source: ConfigSource): KeptSecrets | undefined {
  if (given.pepper !== undefined && given.sealingKey !== undefined) return undefined
  try {
    const kept = readKeptSecrets(dataDir)
    if (kept !== undefined) return kept
    if (source.localSecrets === 'make') return makeKeptSecrets(dataDir, source.random)
    return { pepper: Buffer.from(source.random(32)).toString('base64url'), sealingKey: source.random(32) }
  } catch (error) {
    if (error instanceof SetupError) throw new ConfigError(undefined, [placeless(error.message, error.fix)])
    throw error
  }
}

function placeless(what: string, fix: string): Problem {
  return { what, fix, location: undefined, hide: false }
}

/** Sorts by position in the file; problems without a position come last. */
function inOrder(problems: readonly Problem[]): Problem[] {
  const rank = (problem: Problem): number =>
    problem.location === undefined ? Infinity : problem.location.line * 100_000 + problem.location.column
  return problems.toSorted((a, b) => (rank(a) === rank(b) ? 0 : rank(a) - rank(b)))
}

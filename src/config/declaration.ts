import { stringify } from 'yaml'
import { z } from 'zod'
import { type BackendUse, type Declaration, type DeclaredAccount, type Settings } from '../domain/declared.ts'
import { parseStrictJson, type JsonFault } from '../domain/json-text.ts'
import type { JsonObject } from '../domain/json.ts'
import { checkShape } from './check-shape.ts'
import { documentOf, readDocument, type ConfigDocument } from './document.ts'
import { normalEntries } from './normal-settings.ts'
import { ConfigError, writePath, type Problem } from './problems.ts'
import { backendSchema, maxPerMinute, nameShape, settingSchemas } from './schema.ts'
import type { DeclaredIn } from './settings-source.ts'
import { flag, group, map, text, whole } from './settings.ts'

/** Bounds of a declaration (contract 38.4). */
export const maxFileBytes = 16 * 1024 ** 2
const maxAccounts = 10_000
const maxKeys = 100
const maxBudgets = 16
const maxListed = 200
const maxNetworks = 50
const maxNameCharacters = 100
/** The maximum number of reported problems. The rest of such a file is probably wrong in the same way. */
const maxProblems = 100
/** The maximum nesting of a file: far more than the format needs, and far less than the parser can handle. */
const maxDepth = 100

/** One line without surrounding space, as the names of accounts and keys are. */
const visibleShape = /^(?!\s)[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]{1,100}(?<!\s)$/u

/** See `readBudgetLabel`. */
const budgetShape =
  /^(?:usd|tokens) (?:5h|day|week|month)(?: (?:rolling|calendar))?(?: (?:key|profile) [^\p{Cc}\p{Cs}]{1,140})?$/u

const listOf = (what: string, max: number) =>
  z
    .array(text(what, maxNameCharacters), { error: `expected a list of ${what}` })
    .min(1, { error: 'expected at least one entry' })
    .max(max, { error: `expected at most ${max} entries` })

const key = group({
  profiles: listOf('profile IDs', maxListed).optional().describe('The only profiles that it may use. Default: all.'),
  requests_per_minute: whole(1, maxPerMinute)
    .optional()
    .describe("Requests per minute, at most the plan's limit. Default: the plan's limit."),
  addresses: listOf('addresses or networks', maxNetworks)
    .optional()
    .describe('The IP addresses and networks that it may be used from. Default: any.'),
})

const account = group({
  plan: text('the ID of a plan', 64).describe('The plan.'),
  suspended: flag.optional().describe('Whether its keys are rejected. If omitted, operators decide.'),
  keys: map(visibleShape, 'a name of 1 to 100 visible characters', key, maxKeys)
    .optional()
    .describe('Its keys by name. If omitted, the file declares no keys of this account.'),
  budgets: map(
    budgetShape,
    'a budget such as "usd month", "tokens day key NAME", or "usd week calendar profile ID"',
    z.number({ error: 'expected a number' }).positive({ error: 'expected a number above 0' }),
    maxBudgets,
  )
    .optional()
    .describe(
      'Budgets that the account cannot change, in US dollars or tokens: a unit (usd, tokens), a window (5h, day, week, month), whether it is rolling or calendar, and a key or profile.',
    ),
})

const uses = ['active', 'drained', 'quarantined'] as const satisfies readonly BackendUse[]

/** The file of `svc-router apply` (contract 38.2). */
const declarationSchema = group({
  version: z.literal(1, { error: 'expected 1, the version of this format' }),
  plans: settingSchemas.plans.optional().describe('Plans by ID, as in the configuration file.'),
  backends: map(
    nameShape,
    'a backend ID: up to 64 letters, digits, ".", "_", and "-"',
    backendSchema.extend({
      use: z
        .enum(uses, { error: `expected ${uses.join(', ')}` })
        .optional()
        .describe('Whether it receives requests. If omitted, operators decide.'),
    }),
  )
    .optional()
    .describe(
      'Backends by ID, as in the configuration file. Providers can be declared only in the configuration file.',
    ),
  profiles: settingSchemas.profiles.optional().describe('Profiles by ID, as in the configuration file.'),
  accounts: map(visibleShape, 'a name of 1 to 100 visible characters', account, maxAccounts)
    .optional()
    .describe('Accounts by name.'),
})

/** A checked file, and where its settings are, for problems that are found later. */
export interface ReadDeclaration {
  readonly declaration: Declaration
  readonly from: DeclaredIn
}

/** Reads a file in YAML or JSON. @throws ConfigError with all problems and their positions */
export function readDeclaration(name: string, file: string): ReadDeclaration {
  if (Buffer.byteLength(file) > maxFileBytes)
    throw new ConfigError(
      name,
      [placeless('the file is larger than 16MiB', 'split it into several files, and apply them one after another')],
      'declaration',
    )
  return read(name, parseYaml(name, file))
}

/** The same for JSON alone, which takes little time for any text. @throws ConfigError with all problems and their paths */
export function readJsonDeclaration(name: string, json: string): ReadDeclaration {
  const parsed = parseStrictJson(json)
  if ('fault' in parsed) throw new ConfigError(name, [faultProblem(parsed)], 'declaration')
  return read(name, documentOf(parsed.value))
}

function parseYaml(name: string, file: string): ConfigDocument {
  if (isDeep(file)) throw new ConfigError(name, [faultProblem({ fault: 'deep', path: [] })], 'declaration')
  try {
    return readDocument(file, 'kept')
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new ConfigError(name, [faultProblem({ fault: 'deep', path: [] })], 'declaration')
  }
}

/**
 * Whether a text is nested too deeply, by brackets, by several list markers in one line, or by indentation. Checked before
 * parsing, because each level costs the parser memory.
 */
function isDeep(file: string): boolean {
  let brackets = 0
  let indent = 0
  let marks = 0
  let isStart = true
  for (const character of file) {
    if (character === '\n') [indent, marks, isStart] = [0, 0, true]
    else if (isStart && character === ' ') indent += 1
    else if (isStart && (character === '-' || character === '?')) marks += 1
    else isStart = false
    if (character === '[' || character === '{') brackets += 1
    else if (character === ']' || character === '}') brackets = Math.max(0, brackets - 1)
    if (brackets > maxDepth || indent > maxDepth * maxDepth || marks > maxDepth) return true
  }
  return false
}

function read(name: string, document: ConfigDocument): ReadDeclaration {
  if (document.problems.length > 0) throw invalid(name, document.problems)
  const reserved = document.texts().filter(({ text: found }) => found === '__proto__')
  if (reserved.length > 0)
    throw invalid(
      name,
      reserved.map(({ location, path }) => ({
        what: 'the name "__proto__" is reserved',
        fix: 'choose another name',
        location,
        ...(path === undefined ? {} : { path: writePath(path) }),
        hide: false,
      })),
    )
  const { file, problems } = checkShape(document, declarationSchema, maxProblems)
  if (problems.length > 0) throw invalid(name, problems)
  return { declaration: declarationOf(file), from: { name, document } }
}

function invalid(name: string, problems: readonly Problem[]): ConfigError {
  return new ConfigError(name, problems.slice(0, maxProblems), 'declaration')
}

function declarationOf(file: z.output<typeof declarationSchema>): Declaration {
  const { plans, profiles, accounts } = file as unknown as Partial<Settings> & {
    readonly accounts?: Readonly<Record<string, DeclaredAccount>>
  }
  const given = Object.entries(file.backends ?? {})
  const backends = Object.fromEntries(given.map(([id, backend]) => [id, { ...backend, use: undefined }]))
  return {
    settings: {
      ...(plans === undefined ? {} : { plans: normalEntries('plans', plans) }),
      ...(file.backends === undefined ? {} : { backends: normalEntries('backends', backends) }),
      ...(profiles === undefined ? {} : { profiles: normalEntries('profiles', profiles) }),
    },
    uses: Object.fromEntries(given.flatMap(([id, { use }]) => (use === undefined ? [] : [[id, use]]))),
    accounts,
  }
}

/** Problems that were found later, at their position in the file. */
export function declarationProblems(
  problems: readonly { readonly path: readonly string[]; readonly what: string; readonly fix: string }[],
  document: ConfigDocument,
): readonly Problem[] {
  return problems.map(({ path, what, fix }) => ({
    what,
    fix,
    path: writePath(path),
    location: document.locationOf(path, 'value'),
    hide: false,
  }))
}

/** Writes a file in YAML. */
export function writeDeclaration(file: JsonObject): string {
  return stringify(file, { lineWidth: 0, aliasDuplicateObjects: false })
}

const faults: Readonly<Record<JsonFault['fault'], readonly [what: string, fix: string]>> = {
  invalid: ['this is not valid JSON', 'send one JSON object'],
  repeated: ['this name appears twice', 'keep one of the two'],
  deep: ['the file is nested too deeply', 'remove the extra levels: see docs/admin.md'],
}

function faultProblem({ fault, path }: JsonFault): Problem {
  const [what, fix] = faults[fault]
  return { ...placeless(what, fix), ...(path.length === 0 ? {} : { path: writePath(path) }) }
}

function placeless(what: string, fix: string): Problem {
  return { what, fix, location: undefined, hide: false }
}

import type { z } from 'zod'
import { nearest } from '../domain/profiles.ts'
import { holdsSecret } from '../domain/secret-shapes.ts'
import type { ConfigDocument } from './document.ts'
import { writePath, type Problem } from './problems.ts'

type Issue = z.core.$ZodIssue
type Path = readonly PropertyKey[]

/** Common names from other tools, mapped to our setting names. */
const otherNames: Readonly<Record<string, string>> = {
  api_key: 'credential_env',
  apikey: 'credential_env',
  key: 'credential_env',
  key_env: 'credential_env',
  token: 'credential_env',
  secret: 'credential_env',
  credential: 'credential_env',
  url: 'base_url',
  api_base: 'base_url',
  models: 'profiles',
  routes: 'profiles',
  upstreams: 'backends',
  rpm: 'requests_per_minute',
}
const listedNames = 12
/** Each round removes the invalid settings it found. A removal can only make the enclosing entry incomplete. */
const maxRounds = 8

/**
 * Checks a file against a schema. Returns the valid settings, and a problem for each unknown name, wrong type, wrong
 * value, and secret. With `maxProblems`, which bounds the time for hostile files, it returns no settings if anything is
 * wrong, and may return a few problems more.
 */
export function checkShape<Schema extends z.ZodType>(
  document: ConfigDocument,
  schema: Schema,
  maxProblems?: number,
): { file: z.output<Schema>; problems: readonly Problem[] } {
  const secrets = document
    .texts()
    .filter(({ text }) => holdsSecret(text))
    .map(({ location, path }): Problem => ({
      what: 'the file contains a secret',
      fix: 'move it to an environment variable, name that variable here (credential_env: OPENAI_API_KEY), and rotate the secret if others could read this file',
      location,
      hide: true,
      ...(path === undefined ? {} : { path: writePath(path) }),
    }))
  const problems: Problem[] = [...secrets]
  let value = document.value
  for (let round = 0; round < maxRounds; round++) {
    const result = schema.safeParse(value)
    if (result.success) return { file: result.data, problems }
    if (maxProblems !== undefined) {
      const first = result.error.issues.slice(0, maxProblems).map((issue) => shortened(issue, maxProblems))
      problems.push(...first.flatMap((issue) => problemsOf(issue, document, schema)))
      break
    }
    for (const issue of result.error.issues) {
      if (round === 0)
        problems.push(...problemsOf(issue, document, schema).filter((problem) => !isKnown(problem, secrets)))
      value = without(value, issue)
    }
  }
  return { file: {} as z.output<Schema>, problems }
}

/** Limits an issue about unknown names to this many of them. */
function shortened(issue: Issue, maxNames: number): Issue {
  return issue.code === 'unrecognized_keys' ? { ...issue, keys: issue.keys.slice(0, maxNames) } : issue
}

/** Whether another problem is already reported at the same position. */
export function isKnown(problem: Problem, problems: readonly Problem[]): boolean {
  return (
    problem.location !== undefined && problems.some((known) => known.location !== undefined && isAt(known, problem))
  )
}

/** Removes the setting that an issue is about, so that the rest can still be checked. */
function without(value: unknown, issue: Issue): unknown {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.reduce((rest, name) => remove(rest, [...issue.path, name]), value)
  return remove(value, issue.path)
}

/** Removes a setting or, if it is missing, the entry that it is missing from. */
function remove(value: unknown, path: Path): unknown {
  const [step, ...rest] = path
  if (step === undefined) return {}
  if (Array.isArray(value)) return value.filter((_, index) => index !== step)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  if (rest.length === 0 || isMissing(value, rest, step))
    return Object.fromEntries(entries.filter(([name]) => name !== String(step)))
  return Object.fromEntries(entries.map(([name, inner]) => [name, name === String(step) ? remove(inner, rest) : inner]))
}

function isMissing(value: object, rest: Path, step: PropertyKey): boolean {
  const inner = (value as Record<PropertyKey, unknown>)[step]
  const [next] = rest
  return (
    rest.length === 1 &&
    next !== undefined &&
    typeof inner === 'object' &&
    inner !== null &&
    !Object.hasOwn(inner, next)
  )
}

function isAt(one: Problem, other: Problem): boolean {
  return one.location?.line === other.location?.line && one.location?.column === other.location?.column
}

function problemsOf(issue: Issue, document: ConfigDocument, schema: z.ZodType): Problem[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((name) => ({
      what: `unknown setting "${shownName(name)}"${inside(issue.path)}`,
      fix: suggest(name, settingsAt(schema, issue.path)),
      location: document.locationOf([...issue.path, name], 'name'),
      path: writePath([...issue.path, name]),
      hide: false,
    }))
  }
  const name = nameOf(issue.path)
  const path = writePath(issue.path)
  if (issue.code === 'invalid_key') {
    const expected = issue.issues[0]?.message ?? 'expected another name'
    return [
      {
        what: `the name "${shownName(name)}"${inside(issue.path.slice(0, -1))} is invalid`,
        fix: expected,
        location: document.locationOf(issue.path, 'name'),
        path,
        hide: false,
      },
    ]
  }
  if (!document.has(issue.path) || isEmptyAt(document, issue.path)) {
    return [
      {
        what: `"${name}" is missing${inside(issue.path.slice(0, -1))}`,
        fix: `add "${name}:"; ${issue.message}`,
        location: document.locationOf(issue.path, 'name'),
        path,
        hide: false,
      },
    ]
  }
  const hide = name.endsWith('_env') || name.endsWith('url')
  return [
    {
      what: `"${name}" has an invalid value`,
      fix: issue.message,
      location: document.locationOf(issue.path, 'value'),
      path,
      hide,
    },
  ]
}

function isEmptyAt(document: ConfigDocument, path: Path): boolean {
  let value: unknown = document.value
  for (const step of path)
    value = typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[step] : undefined
  return value === undefined
}

function nameOf(path: Path): string {
  const last = path.at(-1)
  return typeof last === 'number' ? `${nameOf(path.slice(0, -1))}[${last}]` : String(last ?? 'the file')
}

function shownName(name: string): string {
  return holdsSecret(name) ? '[secret]' : name.slice(0, 64)
}

function inside(path: Path): string {
  return path.length === 0 ? '' : ` in ${path.map((step) => shownName(String(step))).join('.')}`
}

/** The fix for an unknown name: suggests the closest known name, or lists the known names. */
export function suggest(name: string, known: readonly string[]): string {
  const alias = otherNames[name.toLowerCase()]
  const near = alias !== undefined && known.includes(alias) ? alias : nearest(name, known)
  if (near !== undefined) return `did you mean "${near}"?`
  if (known.length === 0) return 'remove it: none are defined'
  const more = known.length > listedNames ? ', …' : ''
  return `use one of: ${known.slice(0, listedNames).join(', ')}${more}`
}

/** The setting names that the schema allows at a path, for suggestions. */
function settingsAt(root: z.ZodType, path: Path): string[] {
  let schema: unknown = root
  for (const step of path) {
    const { shape, valueType } = definitionOf(schema)
    schema = shape === undefined ? valueType : shape[String(step)]
  }
  return Object.keys(definitionOf(schema).shape ?? {})
}

interface Definition {
  readonly innerType?: unknown
  readonly shape?: Readonly<Record<string, unknown>>
  readonly valueType?: unknown
}

function definitionOf(schema: unknown): Definition {
  const definition = (schema as { readonly def?: Definition } | undefined)?.def ?? {}
  return definition.innerType === undefined ? definition : definitionOf(definition.innerType)
}

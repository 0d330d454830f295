import { maskSecrets } from '../domain/secret-shapes.ts'

/** A position in the file. Line and column count from 1, in characters. */
export interface SourceLocation {
  readonly line: number
  readonly column: number
  readonly length: number
  readonly text: string
}

/** One configuration problem, described in full sentences that never contain the value of a secret. */
export interface Problem {
  readonly what: string
  readonly fix: string
  /** The setting, such as `plans.pro.name`; absent if the problem is not about one. */
  readonly path?: string
  /** Undefined if the setting is missing from the file or comes from the environment. */
  readonly location: SourceLocation | undefined
  /** Whether the marked text may be a secret and is replaced by asterisks. */
  readonly hide: boolean
}

const shownCharacters = 120
const maxNameCharacters = 100

/** Writes a path as problems show it. Names that may be secrets or are long are shortened. */
export function writePath(path: readonly PropertyKey[]): string {
  return path.map((step) => maskSecrets(String(step)).slice(0, maxNameCharacters)).join('.')
}

/** Reports every problem in the configuration at once. The operator reads its message. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly file: string | undefined
  readonly problems: readonly Problem[]
  /** Whether the file is the configuration or one for `svc-router apply`. */
  readonly of: 'configuration' | 'declaration'

  constructor(file: string | undefined, problems: readonly Problem[], of: ConfigError['of'] = 'configuration') {
    super(problems.map((problem) => writeProblem(file, problem)).join('\n\n'))
    this.file = file
    this.of = of
    this.problems = problems
  }
}

/** Formats one problem: what is wrong, `file:line:column`, the line with a caret below it, and the fix. */
function writeProblem(file: string | undefined, problem: Problem): string {
  const lines = [`error: ${problem.what}`]
  const { location } = problem
  if (location !== undefined) {
    const margin = String(location.line).length
    const marked = Math.max(1, Math.min(location.length, location.text.length - location.column + 1))
    lines.push(`  --> ${file ?? 'configuration'}:${location.line}:${location.column}`)
    if (location.column + marked <= shownCharacters) {
      lines.push(`${location.line} | ${shownLine(location, marked, problem.hide)}`)
      lines.push(`${' '.repeat(margin)} | ${' '.repeat(location.column - 1)}${'^'.repeat(marked)}`)
    }
  } else if (file !== undefined) {
    lines.push(`  --> ${file}${problem.path === undefined ? '' : ` at ${problem.path}`}`)
  }
  lines.push(`  = fix: ${problem.fix}`)
  return lines.join('\n')
}

function shownLine(location: SourceLocation, marked: number, hide: boolean): string {
  const from = location.column - 1
  const text = hide
    ? location.text.slice(0, from) + '*'.repeat(marked) + location.text.slice(from + marked)
    : location.text
  return maskSecrets(text).slice(0, shownCharacters)
}

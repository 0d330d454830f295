import { Secret } from '../domain/secret.ts'
import type { ConfigDocument } from './document.ts'
import type { Problem } from './problems.ts'

export type Environment = Readonly<Record<string, string | undefined>>
type Path = readonly PropertyKey[]

/** Collects what is wrong while the settings are resolved, so that everything is told at once. */
export class Findings {
  readonly problems: Problem[] = []
  readonly env: Environment
  /** Whether each variable with a backend's credential must be set. */
  readonly needsCredentials: boolean
  readonly #document: ConfigDocument

  constructor(document: ConfigDocument, env: Environment, needsCredentials: boolean) {
    this.#document = document
    this.env = env
    this.needsCredentials = needsCredentials
  }

  /** Notes a problem with the value of a setting, or with its name. */
  add(path: Path, what: string, fix: string, part: 'name' | 'value' = 'value'): void {
    this.problems.push({ what, fix, place: this.#document.placeOf(path, part), hide: false })
  }

  /** Whether the file has this setting, be its value usable or not: what is wrong with it has its own problem. */
  mentions(path: Path): boolean {
    return this.#document.has(path)
  }

  /** The names in one of the file's maps, usable or not. */
  names(map: 'plans' | 'providers' | 'backends'): readonly string[] {
    const value = (this.#document.value as Readonly<Record<string, unknown>>)[map]
    return typeof value === 'object' && value !== null ? Object.keys(value) : []
  }

  /** The value of the environment variable that a setting names; undefined, with a problem, where it is not set. */
  secret(path: Path, name: string, what: string): Secret | undefined {
    const value = this.env[name]
    if (value !== undefined && value.trim() !== '') return new Secret(value.trim())
    this.add(path, `the environment variable ${name} is not set: ${what}`, `export ${name}=… and start again`)
    return undefined
  }
}

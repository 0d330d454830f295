import { Secret } from '../runtime/secret.ts'
import type { ConfigDocument } from './document.ts'
import { writePath, type Problem } from './problems.ts'

export type Environment = Readonly<Record<string, string | undefined>>
type Path = readonly PropertyKey[]

/** Collects problems while settings are resolved, so that all of them are reported at once. */
export class Findings {
  readonly problems: Problem[] = []
  readonly env: Environment
  /** Whether every environment variable that holds a backend's credential must be set. */
  readonly needsCredentials: boolean
  readonly #document: ConfigDocument

  constructor(document: ConfigDocument, env: Environment, needsCredentials: boolean) {
    this.#document = document
    this.env = env
    this.needsCredentials = needsCredentials
  }

  /** Adds a problem with the value or the name of a setting. */
  add(path: Path, what: string, fix: string, part: 'name' | 'value' = 'value'): void {
    const location = this.#document.locationOf(path, part)
    this.problems.push({ what, fix, path: writePath(path), location, hide: false })
  }

  /** Whether the file has this setting, valid or not. An invalid value is reported separately. */
  mentions(path: Path): boolean {
    return this.#document.has(path)
  }

  /** The names in one of the file's maps, valid or not. */
  names(map: 'plans' | 'providers' | 'backends'): readonly string[] {
    const value = (this.#document.value as Readonly<Record<string, unknown>>)[map]
    return typeof value === 'object' && value !== null ? Object.keys(value) : []
  }

  /** Reads the environment variable that a setting names. Returns undefined and adds a problem if it is not set. */
  secret(path: Path, name: string, what: string): Secret | undefined {
    const value = this.env[name]
    if (value !== undefined && value.trim() !== '') return new Secret(value.trim())
    this.add(path, `the environment variable ${name} is not set: ${what}`, `export ${name}=… and start again`)
    return undefined
  }
}

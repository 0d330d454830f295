import type { FormatId } from '../../src/domain/format-id.ts'
import type { ServerProcess } from './server-process.ts'

/** The files of the model that make-tiny-model.py makes. */
export interface Model {
  readonly gguf: string
  /** A folder for transformers. */
  readonly hf: string
}

/** One server of models: how it is had, how it is started, and what differs behind svc-router. */
export interface ModelServer {
  readonly name: string
  /** The preset that people use for it. */
  readonly preset: string
  /** The format it is asked in; the preset's own where absent. */
  readonly format?: FormatId
  /** Puts its program into the cache where it is not there yet. @throws Unavailable */
  install(): void
  /** Starts it with that model; `folder` is its own. */
  start(model: Model, folder: string): Promise<RunningServer>
  /** Why a row differs, by the names of the case and of the convention or `*`: everything else must be equal. */
  readonly differences?: Readonly<Record<string, string>>
}

/** A server that answers. */
export interface RunningServer {
  /** With `/v1`. */
  readonly baseUrl: string
  /** Its credential, where it wants one. */
  readonly key?: string
  /** What it calls the model. */
  readonly model: string
  /** In the order in which they start; the first one holds the model. */
  readonly processes: readonly [ServerProcess, ...ServerProcess[]]
  /** Makes the server end every answer at once, as an operator can; absent where it has no such command. */
  readonly abortAll?: () => Promise<void>
}

import type { FormatId } from '../../src/domain/format-id.ts'
import type { ServerProcess } from './server-process.ts'

/** The model files that make-tiny-model.py creates. */
export interface Model {
  readonly gguf: string
  /** The folder of the model for transformers. */
  readonly hf: string
}

/** A kind of model server: how to install it, how to start it, and what differs through svc-router. */
export interface ModelServer {
  readonly name: string
  /** The preset for this server. */
  readonly preset: string
  /** The format of upstream requests. Default: that of the preset. */
  readonly format?: FormatId
  /** Installs its program into the cache if it is missing. @throws Unavailable */
  install(): void
  /** Starts it with a model. Only this server uses `folder`. */
  start(model: Model, folder: string): Promise<RunningServer>
  /** Why an answer may differ, by case and convention or `*`, such as `stop, *`. All other answers must be equal. */
  readonly differences?: Readonly<Record<string, string>>
}

/** A server that is ready. */
export interface RunningServer {
  /** With `/v1`. */
  readonly baseUrl: string
  /** Its credential, if it requires one. */
  readonly key?: string
  /** Its name for the model. */
  readonly model: string
  /** Its processes, in the order in which they start. The first one runs the model. */
  readonly processes: readonly [ServerProcess, ...ServerProcess[]]
  /** Aborts every answer, as an operator can. Absent if the server has no such command. */
  readonly abortAll?: () => Promise<void>
}

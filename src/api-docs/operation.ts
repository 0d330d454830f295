/** One thing that can be asked of the API: what `/openapi.json` and the API reference are made of. */
export interface ApiOperation {
  readonly method: 'get' | 'post' | 'delete' | 'head'
  /** From the origin on; `{name}` is a parameter. */
  readonly path: string
  readonly id: string
  /** A few words, as a heading. */
  readonly summary: string
  /** One or two sentences, Markdown. */
  readonly description: string
  readonly access: 'key' | 'public'
  /**
   * Which errors it can return. `model`: all errors of a model request. `lookup`: those of a read with a key.
   * `public`: those of a public read.
   */
  readonly errorCodes: 'model' | 'lookup' | 'public'
  readonly parameters?: readonly ApiParameter[]
  readonly body?: ApiBody
  /** What a 200 response contains, in a sentence. */
  readonly answer: string
  /** Whether a 200 can be a stream of events. */
  readonly streams?: boolean
}

interface ApiParameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly description: string
  readonly schema: Schema
}

/** The fields that svc-router reads. All others go to the provider unchanged (contract 2.22, 11.1). */
interface ApiBody {
  readonly required: readonly string[]
  readonly fields: Readonly<Record<string, Schema>>
  readonly example: object
}

/** A JSON schema, as far as we use one. */
export interface Schema {
  readonly description?: string
  readonly [keyword: string]: unknown
}

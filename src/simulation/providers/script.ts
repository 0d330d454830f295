import { type JsonObject, isObject } from '../../domain/json.ts'

/** Every scripted behavior of a simulated provider (contract 7). */
export const stepKinds = [
  /** Succeeds; `text`, `calls`, `length` or `words` change the content. */
  'answer',
  /** Fails with `status` (default 500), `retryAfter`, `body`. */
  'status',
  /** 400 with the code of that name. */
  'context_length_exceeded',
  /** Destroys the connection before any byte. */
  'reset',
  /** Never answers. */
  'silence',
  /** Headers at once, the first event after `ms`. */
  'slow_first',
  /** Headers after `ms`. */
  'slow_headers',
  /** 200 and then an error event, or with `with: 'garbage'` something that is not JSON. */
  'broken_first_event',
  /** 200 without any event, or without any choice. */
  'empty',
  /** 200 with a web page. */
  'html',
  /** Closes after `afterEvents` events, by `end` (well formed), `fin` (default), or `rst`. */
  'cut',
  /** Sends nothing more after `afterEvents` events. */
  'stall',
  /** Sends an error event after `afterEvents` events. */
  'error_event',
  /** Leaves out `[DONE]`. */
  'no_done',
  /** One event of `bytes` on one line. */
  'huge_line',
] as const

export type StepKind = (typeof stepKinds)[number]

/** The behavior for one request. Steps apply in order, one per request; after the last, requests succeed. */
export interface ScriptStep {
  readonly do: StepKind
  /** Applies to all further requests. */
  readonly repeat?: boolean
  readonly status?: number
  /** The exact value of the `Retry-After` header. */
  readonly retryAfter?: string
  readonly body?: string
  readonly ms?: number
  readonly afterEvents?: number
  readonly by?: 'end' | 'fin' | 'rst'
  readonly with?: 'error' | 'garbage'
  readonly bytes?: number
  /** Delay between two events. */
  readonly tokenDelayMs?: number
  /** How many events come without that delay first; default 1. */
  readonly delayAfterEvents?: number
  /** The answer's text. */
  readonly text?: string
  /** The answer's calls: JSON of a list of `name` and `arguments`; `text` comes before them. */
  readonly calls?: string
  /** An answer of this many bytes. */
  readonly length?: number
  /** An answer of this many words, each an event. */
  readonly words?: number
}

const maxSteps = 10_000
const maxNumber = 64 * 1024 * 1024

/** Each field's type, or its allowed values. */
const fields = {
  repeat: 'boolean',
  status: 'number',
  retryAfter: 'string',
  body: 'string',
  ms: 'number',
  afterEvents: 'number',
  by: ['end', 'fin', 'rst'],
  with: ['error', 'garbage'],
  bytes: 'number',
  tokenDelayMs: 'number',
  delayAfterEvents: 'number',
  text: 'string',
  calls: 'string',
  length: 'number',
  words: 'number',
} as const satisfies Record<Exclude<keyof ScriptStep, 'do'>, string | readonly string[]>

/** Parses a script. @throws TypeError that names the invalid step and field */
export function readScript(value: unknown): ScriptStep[] {
  if (!Array.isArray(value)) throw new TypeError('A script is a list of steps.')
  if (value.length > maxSteps) throw new TypeError(`A script has at most ${maxSteps} steps.`)
  for (const [index, step] of value.entries()) {
    const problem = isObject(step) ? problemOf(step) : 'it is not an object'
    if (problem !== undefined) throw new TypeError(`Step ${index}: ${problem}.`)
  }
  return value as ScriptStep[]
}

function problemOf(step: JsonObject): string | undefined {
  const { do: kind, ...rest } = step
  if (!stepKinds.some((known) => known === kind)) return `"do" must be one of ${stepKinds.join(', ')}`
  for (const [name, value] of Object.entries(rest)) {
    if (value === undefined) continue
    if (!Object.hasOwn(fields, name)) return `the field "${name.slice(0, 40)}" is unknown`
    const expected: string | readonly string[] = fields[name as keyof typeof fields]
    const fits =
      typeof expected === 'string' ? typeof value === expected : typeof value === 'string' && expected.includes(value)
    if (!fits) return `"${name}" must be ${typeof expected === 'string' ? `a ${expected}` : expected.join(' or ')}`
    if (typeof value === 'number' && !(Number.isInteger(value) && value >= 0 && value <= maxNumber)) {
      return `"${name}" must be a whole number from 0 to ${maxNumber}`
    }
  }
  const { status } = step
  return typeof status === 'number' && (status < 200 || status > 599) ? '"status" must be from 200 to 599' : undefined
}

const well: ScriptStep = { do: 'answer' }

/** The remaining steps. */
export class Script {
  #steps: ScriptStep[] = []

  replace(steps: readonly ScriptStep[]): void {
    this.#steps = [...steps]
  }

  /** The step for the next request. */
  next(): ScriptStep {
    const step = this.#steps[0]
    if (step === undefined) return well
    if (step.repeat !== true) this.#steps.shift()
    return step
  }

  get left(): number {
    return this.#steps.length
  }
}

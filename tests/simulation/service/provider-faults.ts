import type { Dice } from '../dice.ts'

/** How a provider treats one request. */
export type Treatment =
  | { readonly kind: 'answer'; readonly firstMs: number; readonly paceMs: number; readonly closes: boolean }
  /** Closes the connection before any byte of an answer; if it was reused, as a keep-alive race. */
  | { readonly kind: 'reset'; readonly afterMs: number }
  | {
      readonly kind: 'status'
      readonly status: number
      readonly retryAfter: string | undefined
      readonly code: string | undefined
      readonly afterMs: number
    }
  /** Nothing, for ever: before the headers, or after them. */
  | { readonly kind: 'silence'; readonly headers: boolean }
  | { readonly kind: 'page'; readonly afterMs: number }
  | { readonly kind: 'empty'; readonly afterMs: number }
  /** 200, and then an error or garbage in place of the first event. */
  | { readonly kind: 'bad_first'; readonly with: 'error' | 'garbage'; readonly afterMs: number }
  /** A part of the answer, and then something else than the rest. */
  | {
      readonly kind: 'broken'
      readonly afterEvents: number
      readonly by: 'end' | 'fin' | 'rst' | 'error' | 'garbage' | 'stall' | 'odd_error'
      readonly paceMs: number
    }
  /** The whole answer, and something odd with it. */
  | {
      readonly kind: 'odd'
      readonly what: 'no_done' | 'trailing' | 'huge_usage' | 'abort_reason'
      readonly paceMs: number
    }

/** What can go wrong with a provider, in the classes of the classification table. */
export type FaultClass =
  | 'connect'
  | 'reset'
  | 'credentials'
  | 'rate'
  | 'overload'
  | 'server_error'
  | 'rejection'
  | 'silence'
  | 'bad_start'
  | 'broken_stream'
  | 'stall'
  | 'odd'

export const faultClasses: readonly FaultClass[] = [
  'connect',
  'reset',
  'credentials',
  'rate',
  'overload',
  'server_error',
  'rejection',
  'silence',
  'bad_start',
  'broken_stream',
  'stall',
  'odd',
]

/** Values of `Retry-After` that real providers and broken ones send. */
const retryAfters = [
  '1000000000000',
  '2592000',
  undefined,
  '0',
  '1',
  '2',
  '7',
  '30',
  '-1',
  '1000000000000',
  '99999999999999999999',
  'Wed, 21 Oct 2015 07:28:00 GMT',
  'Fri, 31 Dec 9999 23:59:59 GMT',
  'soon',
] as const

/** A request that succeeds. */
export function answers(dice: Dice): Treatment {
  return { kind: 'answer', firstMs: dice.ms(60), paceMs: dice.ms(4), closes: dice.chance(0.1) }
}

/** One fault of that class; `connect` faults happen before a request, see `connectFault`. */
export function faultOf(kind: Exclude<FaultClass, 'connect'>, dice: Dice): Treatment {
  const afterMs = dice.ms(20)
  const paceMs = dice.ms(5)
  const status = (codes: readonly number[], code?: string): Treatment => ({
    kind: 'status',
    status: dice.pick(codes),
    retryAfter: dice.pick(retryAfters),
    code,
    afterMs,
  })
  switch (kind) {
    case 'reset':
      return { kind: 'reset', afterMs: dice.pick([0, 1, 900, 1_500]) }
    case 'credentials':
      return status([401, 401, 403, 402])
    case 'rate':
      return status([429], dice.pick([undefined, 'insufficient_quota']))
    case 'overload':
      return status([503, 529])
    case 'server_error':
      return status([500, 500, 502, 504, 408])
    case 'rejection':
      return status([400, 404, 413, 422], dice.pick([undefined, 'context_length_exceeded', 'content_filter']))
    case 'silence':
      return { kind: 'silence', headers: dice.chance(0.5) }
    case 'bad_start':
      return dice.pick<Treatment>([
        { kind: 'page', afterMs },
        { kind: 'empty', afterMs },
        { kind: 'bad_first', with: 'error', afterMs },
        { kind: 'bad_first', with: 'garbage', afterMs },
      ])
    case 'broken_stream':
      return {
        kind: 'broken',
        afterEvents: dice.upTo(9),
        by: dice.pick(['end', 'fin', 'rst', 'error', 'garbage', 'odd_error']),
        paceMs,
      }
    case 'stall':
      return { kind: 'broken', afterEvents: dice.upTo(9), by: 'stall', paceMs }
    case 'odd':
      return { kind: 'odd', what: dice.pick(['no_done', 'trailing', 'huge_usage', 'abort_reason']), paceMs }
  }
}

import type { ClientFormatId, FormatId } from '../../../src/domain/format-id.ts'
import { pairwise } from './pairwise.ts'
import { upstreamFaults, type FaultClass, type UpstreamFault } from './upstream-faults.ts'

export type Mode = 'stream' | 'whole'
export type ClientFormat = Extract<ClientFormatId, 'openai-chat' | 'openai-responses' | 'anthropic-messages'>

/** How many of a profile's backends have the fault: the first ones, in its order. */
const failing = ['1of1', '1of3', '2of3', '3of3', '3of4'] as const
type Failing = (typeof failing)[number]

export const clientFormats: readonly ClientFormat[] = ['openai-chat', 'openai-responses', 'anthropic-messages']
const providerFormats: readonly FormatId[] = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini']

export interface UpstreamCell {
  /** Its coordinates, which also run it alone. */
  readonly id: string
  readonly fault: UpstreamFault
  readonly is: FaultClass
  readonly mode: Mode
  readonly client: ClientFormat
  readonly provider: FormatId
  readonly faulty: number
  readonly backends: number
}

/** Every cell: each fault that the mode has, in every client and provider format, at one backend to all of them. */
export function allUpstreamCells(): UpstreamCell[] {
  return upstreamFaults.flatMap((fault) =>
    (['stream', 'whole'] as const).flatMap((mode) => {
      const is = fault[mode]?.is
      if (is === undefined) return []
      return clientFormats.flatMap((client) =>
        providerFormats.flatMap((provider) =>
          failing.map((count) => cellOf({ fault, is, mode, client, provider }, count)),
        ),
      )
    }),
  )
}

function cellOf(at: Omit<UpstreamCell, 'id' | 'faulty' | 'backends'>, count: Failing): UpstreamCell {
  const [faulty, backends] = count.split('of').map(Number) as [number, number]
  const id = ['upstream', at.fault.name, at.client, at.provider, at.mode, count].join('/')
  return { ...at, id, faulty, backends }
}

/** A sample in which every two coordinates meet. */
export function sampledUpstreamCells(): UpstreamCell[] {
  return pairwise(allUpstreamCells(), ({ id }) => id.split('/').slice(1))
}

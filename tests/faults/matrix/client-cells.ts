import type { FormatId } from '../../../src/domain/format-id.ts'
import { clientFaults, type ClientFault } from './client-faults.ts'
import { pairwise } from './pairwise.ts'
import { clientFormats, type ClientFormat, type Mode } from './upstream-cells.ts'

/** How the client closes its connection: in order, or abruptly. */
const closings = ['fin', 'rst'] as const
const providerFormats: readonly FormatId[] = ['openai-chat', 'anthropic-messages']

export interface ClientCell {
  /** Its coordinates, which also run it alone. */
  readonly id: string
  readonly fault: ClientFault
  readonly mode: Mode
  readonly client: ClientFormat
  readonly provider: FormatId
  readonly closing: (typeof closings)[number]
}

export function allClientCells(): ClientCell[] {
  return clientFaults.flatMap((fault) =>
    (fault.modes ?? (['stream', 'whole'] as const)).flatMap((mode) =>
      clientFormats.flatMap((client) =>
        providerFormats.flatMap((provider) =>
          closings.map((closing): ClientCell => {
            const id = ['client', fault.name, client, provider, mode, closing].join('/')
            return { id, fault, mode, client, provider, closing }
          }),
        ),
      ),
    ),
  )
}

/** A sample in which every two coordinates meet. */
export function sampledClientCells(): ClientCell[] {
  return pairwise(allClientCells(), ({ id }) => id.split('/').slice(1))
}

import { formatById, relayById } from '../../../src/formats/formats.ts'
import type { Lane } from '../../../src/gateway/lanes/lane.ts'
import { openLane } from '../../../src/gateway/lanes/open-lane.ts'
import type { Backend } from '../../../src/gateway/ports.ts'
import { contextOf } from '../../formats/exchange.ts'

/** The lane of an answer with embeddings, in the caller's format. */
export function embeddingsLane(): Lane {
  const client = formatById('openai-embeddings')
  const context = contextOf(client.readRequest({ model: 'p', input: 'x' }))
  return openLane({
    context,
    client,
    backend: {} as Backend,
    backendFormat: client,
    relay: relayById('openai-embeddings'),
  })
}

import { formatById } from '../formats/formats.ts'
import { FusionNotes } from '../gateway/fusion/fusion-notes.ts'
import { ProviderErrors } from '../gateway/request/provider-errors.ts'
import { Conversations } from '../gateway/responses/conversations.ts'
import { StoredResponses } from '../gateway/responses/stored-responses.ts'
import { idMinter } from '../runtime/ids.ts'
import { createSealer } from '../runtime/sealer.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

interface AnswerStores {
  readonly stored: StoredResponses
  readonly conversations: Conversations
  readonly notes: FusionNotes
  readonly providerErrors: ProviderErrors
}

/** What is stored encrypted about answers. */
export function openAnswerStores({ config, keys, clock, random, log }: Runtime, storage: Storage): AnswerStores {
  const sealer = createSealer({ ...keys, random })
  const shared = { sealer, clock, log, retentionMs: config.responseRetentionMs, maxBytes: config.limits.bodyBytes }
  const mintId = idMinter('conv_', () => clock.nowMs(), random)
  const conversations = new Conversations({ ...shared, store: storage.conversations, mintId })
  const stored = new StoredResponses({ ...shared, formats: formatById, store: storage.responses, conversations })
  const providerErrors = new ProviderErrors({ store: storage.store, sealer, clock, random, log })
  const notes = new FusionNotes(sealer, clock)
  return { stored, conversations, notes, providerErrors }
}

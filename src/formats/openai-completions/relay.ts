import { completionStream, streamChanges } from '../openai-chat/relay.ts'
import type { RelayRules } from '../relay.ts'

/** Text completions, relayed. Their streams are framed, ended, and kept alive like those of chat. */
export const openaiCompletionsRelay: RelayRules = {
  requestChanges: streamChanges,
  stream: { ...completionStream, deltas: ['text'] },
}

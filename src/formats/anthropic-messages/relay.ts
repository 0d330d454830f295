import type { JsonObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'
import type { RelayRules } from '../relay.ts'
import { isBillingReport } from './billing-report.ts'
import { failureFrame, pingFrame } from './frames.ts'
import { traitsOf } from './model-traits.ts'
import { relayMarks } from './write-marks.ts'

/** Messages, relayed. The stream ends with its own last event; a ping keeps it alive at any position. */
export const anthropicMessagesRelay: RelayRules = {
  requestChanges: ({ system }, _conversation, { model }) => {
    // The report changes with each version and each request, and so would the beginning of the prompt.
    if (traitsOf(model).cacheMarks || !isArray(system) || !system.some(isBillingReport)) return {}
    return { system: JSON.stringify(system.filter((block) => !isBillingReport(block))) }
  },

  marks: relayMarks,

  // Beta fields are rejected without it; Claude Code sends such fields in every request.
  passedHeaders: ['anthropic-beta'],

  words: { member: 'messages', part: 'text' },

  encryptedReasoning: {
    member: 'messages',
    opening: /(?<!\\)"(?:signature|data)"\s*:\s*"/g,
    needles: ['"signature"', '"redacted_thinking"'],
    encryptedMember: sealedMember,
    dropsEmptied: true,
  },

  stream: {
    deltas: ['text', 'thinking', 'partial_json'],
    ending: '',
    numbered: false,
    carriesReport: ({ type }) => type === 'message_delta',
    keepAlive: () => pingFrame,
    failure: failureFrame,
  },
}

/**
 * The encrypted member of a reasoning block. Other objects have members with the same names, such as the `data` of an
 * image. Unsigned reasoning has an empty signature.
 */
function sealedMember({ type, signature, data }: JsonObject): string | undefined {
  if (type === 'thinking' || type === 'signature_delta') {
    return typeof signature === 'string' && signature !== '' ? 'signature' : undefined
  }
  return type === 'redacted_thinking' && typeof data === 'string' ? 'data' : undefined
}

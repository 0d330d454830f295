import type { Conversation } from '../../domain/conversation.ts'
import { type JsonObject, isObject } from '../../domain/json.ts'
import { responseIdFor } from '../../domain/stored-responses.ts'
import { errorFields } from '../error-fields.ts'
import { isArray } from '../fields.ts'
import { relayMarks } from '../openai/cache-marks.ts'
import type { RelayRules, RequestChanges } from '../relay.ts'
import { withoutFusionItems } from './fusion-echo.ts'
import { isBareReasoning } from './stored-items.ts'
import { takesTools } from './tool-types.ts'

/** Requests reasoning in a form that can be sent back to a provider that stores nothing. */
const sealedReasoning = 'reasoning.encrypted_content'

/** Responses, relayed. The stream's own response object ends it and keeps it alive, so its id never changes. */
export const openaiResponsesRelay: RelayRules = {
  fits: takesTools,

  requestChanges(body, conversation, { dialect }) {
    const changes: RequestChanges = {}
    // Answers are stored here and not at the provider, so any backend can continue them and none stores text (contract
    // 11.6).
    if (body['store'] !== false) changes['store'] = 'false'
    const include = includeFor(body, conversation)
    if (include !== undefined) changes['include'] = include
    const { fusionEchoes, bareReasoning } = conversation.hints
    const dropsBare = bareReasoning === true && dialect.replaysReasoning !== true
    if (fusionEchoes === true || dropsBare) changes['input'] = asProvidersKnow(body, dropsBare)
    return changes
  },

  marks: (body, _bytes, target) => relayMarks('input', body, target),

  words: { member: 'input', part: 'input_text' },

  encryptedReasoning: {
    member: 'input',
    // Inside a string, a quote has a backslash before it, so this finds only the name of a member.
    opening: /(?<!\\)"encrypted_content"\s*:\s*"/g,
    needles: ['"encrypted_content"'],
    encryptedMember: (object) => (typeof object['encrypted_content'] === 'string' ? 'encrypted_content' : undefined),
    dropsEmptied: false,
  },

  responsePatches(response, { isStored, isBackground, previousResponseId, conversationId, requestId }) {
    const changes: Record<string, string> = {}
    if (isStored) changes['id'] = JSON.stringify(responseIdFor(requestId))
    if ((response['store'] ?? false) !== isStored) changes['store'] = String(isStored)
    if (isBackground === true) changes['background'] = 'true'
    if (previousResponseId !== undefined) changes['previous_response_id'] = JSON.stringify(previousResponseId)
    if (conversationId !== undefined) changes['conversation'] = JSON.stringify({ id: conversationId })
    return Object.keys(changes).length === 0 ? undefined : changes
  },

  stream: {
    deltas: ['delta', 'obfuscation'],

    ending: 'data: [DONE]\n\n',

    numbered: true,

    carriesReport: ({ type }) => type === 'response.completed' || type === 'response.incomplete',

    observe(data, memory) {
      if (typeof data['sequence_number'] === 'number') memory.sequence = data['sequence_number'] + memory.inserted
      const response = data['response']
      if (memory.response === undefined && isObject(response)) memory.response = response
      memory.hasItems ||= data['type'] === 'response.output_item.added'
    },

    keepAlive(memory) {
      if (memory.response === undefined) return undefined
      memory.inserted += 1
      memory.sequence += 1
      // Clients treat the state in a lifecycle event as complete, and only the caller has the items. Once there are
      // items, use the event with which OpenAI keeps its own streams alive.
      if (memory.hasItems === true) return frame('keepalive', { sequence_number: memory.sequence })
      return frame('response.in_progress', { sequence_number: memory.sequence, response: memory.response })
    },

    failure(failure, memory) {
      const { code, message, param } = failure
      const error = { sequence_number: ++memory.sequence, code, message, param, error: errorFields(failure) }
      const response = { ...memory.response, status: 'failed', error: { code, message } }
      const failed = { sequence_number: ++memory.sequence, response }
      return `${frame('error', error)}${frame('response.failed', failed)}data: [DONE]\n\n`
    },

    canceled(memory) {
      const response = { ...memory.response, status: 'cancelled' }
      return `${frame('response.cancelled', { sequence_number: ++memory.sequence, response })}data: [DONE]\n\n`
    },
  },
}

function frame(type: string, data: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
}

/** Only if the caller configured reasoning: models without it reject the request. */
function includeFor(body: JsonObject, { reasoning, hints }: Conversation): string | undefined {
  const asked = isArray(body['include']) ? body['include'] : []
  if (reasoning === undefined || hints.store === false || asked.includes(sealedReasoning)) return undefined
  return JSON.stringify([...asked, sealedReasoning])
}

/**
 * Removes what only this service knows, and for a provider that stores nothing, reasoning that is only referenced by
 * id.
 */
function asProvidersKnow(body: JsonObject, dropsBare: boolean): string {
  const items = withoutFusionItems(isArray(body['input']) ? body['input'] : [])
  return JSON.stringify(dropsBare ? items.filter((item) => !isObject(item) || !isBareReasoning(item)) : items)
}

import type { Usage } from '../../domain/conversation.ts'
import { invalidRequest } from '../../domain/errors.ts'
import { estimatedUsage, tokensOfBytes } from '../../domain/estimate-tokens.ts'
import { type JsonObject, isObject } from '../../domain/json.ts'
import { responseIdFor } from '../../domain/stored-responses.ts'
import { isArray } from '../../formats/fields.ts'
import { bodyShape, JsonScan } from '../../formats/json-scan.ts'
import { readRequest } from '../../formats/openai-responses/read-request.ts'
import { inputItems, withIds } from '../../formats/openai-responses/stored-items.ts'
import { writeUsage } from '../../formats/openai-responses/usage.ts'
import type { Gateway } from '../gateway.ts'
import type { AnswerSink, ModelRequest, Principal } from '../ports.ts'
import { CompactionSink } from './compaction-sink.ts'
import type { StoredResponses } from './stored-responses.ts'
import { summaryRequest } from './summary-request.ts'

interface CompactionDeps {
  readonly gateway: Gateway
  readonly stored: StoredResponses
}

/**
 * `POST /v1/responses/compact`: returns the user's messages and one opaque item in place of everything else (contract
 * 12.11). A model of the profile writes the summary in a request of its own, which is admitted, charged, and failed
 * over like any other.
 * @throws ServiceError
 */
export async function answerCompaction(
  { gateway, stored }: CompactionDeps,
  principal: Principal,
  request: ModelRequest,
  sink: AnswerSink,
): Promise<void> {
  const { accountId } = principal
  const asIs = readRequest(request.body)
  gateway.assertAllowed(principal, asIs, request.format)
  const full = await stored.resolve(accountId, request, asIs)
  const conversation = readRequest(full.request.body)
  const items = inputItems(full.request.body['input'])
  if (conversation.turns.length === 0) {
    throw invalidRequest('input', 'There is nothing to compact. Send input, previous_response_id, or conversation.')
  }
  const body = summaryRequest(full.request.body, items, conversation)
  const bytes = Buffer.from(JSON.stringify(body))
  const scan = new JsonScan(bodyShape)
  scan.push(bytes)
  const seal = (answer: JsonObject): JsonObject => {
    const summary = textOf(answer)
    const others = items.filter((item) => !isUserMessage(item))
    // If the model returned no summary, the items themselves are stored so that nothing is lost.
    const sealed = stored.seal(accountId, summary === '' ? { items: others } : { summary })
    const output = [...items.filter(isUserMessage), { type: 'compaction', encrypted_content: sealed }]
    return {
      id: responseIdFor(request.id),
      object: 'response.compaction',
      created_at: answer['created_at'],
      output: withIds(output, responseIdFor(request.id)),
      usage: answer['usage'] ?? writeUsage(estimateOf(bytes, summary)),
    }
  }
  const asked = { ...request, bytes, members: scan.members(bytes), body, isOwnQuestion: true } as const
  await gateway.answer(principal, asked, new CompactionSink(sink, seal))
}

function isUserMessage({ type, role }: JsonObject): boolean {
  return type === 'message' && role === 'user'
}

/** For a backend that does not report usage. */
function estimateOf(body: Buffer, summary: string): Usage {
  return estimatedUsage(tokensOfBytes(body.length), tokensOfBytes(Buffer.byteLength(summary)))
}

function textOf(answer: JsonObject): string {
  let text = ''
  for (const item of isArray(answer['output']) ? answer['output'] : []) {
    for (const part of isObject(item) && isArray(item['content']) ? item['content'] : []) {
      if (isObject(part) && part['type'] === 'output_text' && typeof part['text'] === 'string')
        text += `${part['text']}\n`
    }
  }
  return text.trim()
}

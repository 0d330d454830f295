import { maxQuestionTokens, type RoutingQuestion } from '../../domain/routing-plan.ts'
import { bodyShape, JsonScan } from '../../formats/json-scan.ts'
import { sampleBodies } from '../../formats/sample-body.ts'
import type { ModelRequest } from '../ports.ts'

/** About one token. */
const filler = 'word'

/** A request with these properties, as a client would send it. Its text is filler. */
export function sampleRequest(question: RoutingQuestion): ModelRequest {
  const tokens = Math.min(maxQuestionTokens, Math.max(1, Math.floor(question.tokens)))
  const body = sampleBodies[question.format](question, filler.repeat(tokens))
  const bytes = Buffer.from(JSON.stringify(body))
  const scan = new JsonScan(bodyShape)
  scan.push(bytes)
  return { id: 'req_dryrun', format: question.format, bytes, members: scan.members(bytes), body, timeoutMs: undefined }
}

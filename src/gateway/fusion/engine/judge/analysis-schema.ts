import type { OutputFormat } from '../../../../domain/conversation.ts'
import type { JsonObject } from '../../../../domain/json.ts'
import { answerTypes, criteria, verdicts } from './analysis.ts'

const text = { type: 'string' }
const list = (items: JsonObject): JsonObject => ({ type: 'array', items })

/** All properties required and no others allowed, because strict servers accept nothing else. */
function closed(properties: Record<string, JsonObject>): JsonObject {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
}

/**
 * The JSON schema of the judge's reply about these candidates, for models that enforce one. `readAnalysis` parses the
 * reply.
 */
export function analysisFormat(labels: readonly string[]): OutputFormat {
  const label = { type: 'string', enum: [...labels] }
  const score = { type: 'integer' }
  const scores = closed(Object.fromEntries(criteria.map((name) => [name, score])))
  const schema = closed({
    answer_type: { type: 'string', enum: [...answerTypes] },
    consensus: list(closed({ claim: text, support: list(label) })),
    contradictions: list(
      closed({
        topic: text,
        material: { type: 'boolean' },
        positions: list(closed({ labels: list(label), claim: text })),
        resolution: closed({ side: list(label), check: text }),
      }),
    ),
    partial_coverage: list(closed({ labels: list(label), point: text })),
    unique_insights: list(closed({ label, insight: text, keep: { type: 'boolean' } })),
    blind_spots: list(text),
    scores: closed(Object.fromEntries(labels.map((name) => [name, scores]))),
    injection_flags: list(label),
    verdict: { type: 'string', enum: [...verdicts] },
    outline: list(text),
  })
  return { type: 'json_schema', name: 'comparison', schema, strict: true }
}

import { createHash } from 'node:crypto'
import type { Json, JsonObject } from '../../domain/json.ts'
import { countTokens } from './prompt.ts'

const defaultDimensions = 8
const maxDimensions = 4096
const maxInputs = 2048
const bytesPerHash = 32

/**
 * Builds a deterministic answer to `/embeddings`: the same input gets the same vector from every simulated provider and
 * model, as copies of one real model would return. Vectors have length 1 and no meaning.
 */
export function writeEmbeddings(body: JsonObject): JsonObject {
  const { input, dimensions } = body
  const model = typeof body['model'] === 'string' ? body['model'] : ''
  const size = typeof dimensions === 'number' ? Math.min(maxDimensions, Math.max(1, dimensions)) : defaultDimensions
  const texts = inputsOf(input)
  const tokens = texts.reduce((sum, text) => sum + countTokens(text), 0)
  return {
    object: 'list',
    data: texts.map((text, index) => {
      const vector = vectorOf(text, size)
      const embedding = body['encoding_format'] === 'base64' ? base64Of(vector) : [...vector]
      return { object: 'embedding', index, embedding }
    }),
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    simulated: true,
  }
}

/** A text, a list of texts, a list of token numbers, or a list of such lists. */
function inputsOf(input: Json | undefined): string[] {
  if (!Array.isArray(input)) return [typeof input === 'string' ? input : '']
  const all = input as readonly Json[]
  if (typeof all[0] === 'number') return [JSON.stringify(all)]
  return all.slice(0, maxInputs).map((one) => (typeof one === 'string' ? one : JSON.stringify(one)))
}

function vectorOf(text: string, size: number): Float32Array {
  const vector = new Float32Array(size)
  let hash = Buffer.alloc(0)
  for (let index = 0; index < size; index++) {
    const at = index % bytesPerHash
    if (at === 0) hash = createHash('sha256').update(`${index}\n${text}`).digest()
    vector[index] = hash[at]! - 127.5
  }
  const length = Math.hypot(...vector)
  return vector.map((value) => value / length)
}

function base64Of(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
}

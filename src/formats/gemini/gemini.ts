import type { ProviderFormat } from '../format.ts'
import { GeminiReader } from './read-answer.ts'
import { writeRequest } from './write-request.ts'

/**
 * Google's own `generateContent`, on its Gemini API and on Vertex AI. A provider format only: clients cannot use it.
 */
export const gemini: ProviderFormat = {
  id: 'gemini',
  sealsByModel: true,
  parsesArguments: true,
  upstreamPath: (model, stream) =>
    `/${resourceOf(model)}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  writeRequest,
  readAnswer: () => new GeminiReader(),
}

/** `models/NAME`; names with another collection, such as `tunedModels/NAME`, stay as they are. */
function resourceOf(model: string): string {
  const segments = model.split('/').map((segment) => encodeURIComponent(segment))
  return segments.length > 1 ? segments.join('/') : `models/${segments[0] ?? ''}`
}

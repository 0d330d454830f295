import { ServiceError } from '../domain/errors.ts'

/** Vendors' endpoints that this service does not have, by path prefix below `/v1`. */
const endpoints: readonly (readonly [path: string, name: string])[] = [
  ['/assistants', 'Assistants'],
  ['/audio', 'Audio (speech, transcriptions, and translations)'],
  ['/batches', 'Batches'],
  ['/chat/completions/', 'Stored chat completions'],
  ['/chatkit', 'ChatKit'],
  ['/complete', 'Text completions in Anthropic’s old format'],
  ['/containers', 'Containers'],
  ['/edits', 'Edits'],
  ['/engines', 'Engines'],
  ['/evals', 'Evals'],
  ['/files', 'Files'],
  ['/fine_tuning', 'Fine-tuning'],
  ['/fine-tunes', 'Fine-tuning'],
  ['/images', 'Images'],
  ['/messages/batches', 'Message batches'],
  ['/moderations', 'Moderations'],
  ['/organization', 'Administration of organizations'],
  ['/organizations', 'Administration of organizations'],
  ['/realtime', 'Realtime sessions'],
  ['/rerank', 'Reranking'],
  ['/score', 'Scoring'],
  ['/skills', 'Skills'],
  ['/threads', 'Threads'],
  ['/tokenize', 'Tokenization'],
  ['/uploads', 'Uploads'],
  ['/vector_stores', 'Vector stores'],
  ['/videos', 'Videos'],
]
/** Other APIs, by path prefix. */
const elsewhere: readonly (readonly [path: string, name: string])[] = [
  ['/api/chat', 'Ollama’s own API'],
  ['/api/generate', 'Ollama’s own API'],
  ['/api/tags', 'Ollama’s own API'],
  ['/v1beta', 'Gemini’s own API'],
  ['/v2/rerank', 'Reranking'],
]

/**
 * The error for an unknown path. A known endpoint that this service lacks is named, because its caller's base URL is
 * right; other callers get the right `baseUrl`.
 */
export function unknownPathError(path: string, baseUrl: string): ServiceError {
  const rest = path.startsWith('/v1/') ? path.slice('/v1'.length) : undefined
  const found =
    rest === undefined
      ? elsewhere.find(([start]) => isBelow(path, start))
      : endpoints.find(([start]) => isBelow(rest, start))
  const problem =
    found === undefined
      ? `There is nothing at this path. The base URL of the API is ${baseUrl}`
      : `Not supported: ${found[1]}. Chat completions, responses, messages, completions, embeddings, and models are available under ${baseUrl}`
  return new ServiceError('not_found', { words: { problem } })
}

function isBelow(path: string, start: string): boolean {
  if (!path.startsWith(start)) return false
  return start.endsWith('/') || path.length === start.length || path[start.length] === '/'
}

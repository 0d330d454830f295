import { join } from 'node:path'
import { freePort } from '../../src/runtime/free-port.ts'
import { serverEnvironment } from './installing.ts'
import type { ModelServer } from './model-server.ts'
import { options, ServerProcess } from './server-process.ts'

/** `transformers serve`, which streams by default. */
export const transformers: ModelServer = {
  name: 'transformers',
  preset: 'vllm',
  install: () => void serverEnvironment('transformers'),
  async start(model, folder) {
    const port = await freePort()
    const process = await ServerProcess.start({
      command: join(serverEnvironment('transformers'), 'bin', 'transformers'),
      args: ['serve', model.hf, ...options({ host: '127.0.0.1', port, device: 'cpu', dtype: 'float32' })],
      env: { OMP_NUM_THREADS: '1', HF_HUB_OFFLINE: '1', HF_HOME: join(folder, 'hub') },
      folder,
      readyUrl: `http://127.0.0.1:${port}/health`,
    })
    return { baseUrl: `http://127.0.0.1:${port}/v1`, model: model.hf, processes: [process] }
  },
}

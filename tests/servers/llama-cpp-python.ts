import { join } from 'node:path'
import { freePort } from '../../src/runtime/free-port.ts'
import { serverEnvironment } from './installing.ts'
import type { ModelServer } from './model-server.ts'
import { options, ServerProcess } from './server-process.ts'

/** Compiled without instructions that some machines lack, because one of them would crash the server. */
const environment = (): string =>
  serverEnvironment('llama-cpp-python', {
    CMAKE_ARGS: '-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF',
    CMAKE_BUILD_PARALLEL_LEVEL: '2',
    CFLAGS: '-O1',
  })

export const llamaCppPython: ModelServer = {
  name: 'llama-cpp-python',
  differences: {
    'too long, *': 'equal if not streamed; its stream ends empty and without a reason, so svc-router returns a 503',
  },
  preset: 'llama-cpp',
  install: () => void environment(),
  async start(model, folder) {
    const port = await freePort()
    const process = await ServerProcess.start({
      command: join(environment(), 'bin', 'python'),
      args: [
        '-m',
        'llama_cpp.server',
        ...options({
          model: model.gguf,
          model_alias: 'tiny',
          host: '127.0.0.1',
          port,
          n_ctx: 2048,
          n_threads: 1,
          // By default, a new request interrupts the current one.
          interrupt_requests: 'False',
        }),
      ],
      folder,
      readyUrl: `http://127.0.0.1:${port}/v1/models`,
    })
    return { baseUrl: `http://127.0.0.1:${port}/v1`, model: 'tiny', processes: [process] }
  },
}

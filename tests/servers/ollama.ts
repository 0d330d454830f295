import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../src/runtime/free-port.ts'
import { debianPackage, goProgram } from './installing.ts'
import type { ModelServer } from './model-server.ts'
import { ServerProcess } from './server-process.ts'

const version = 'v0.17.4'
const createWithinMs = 120_000

/**
 * Returns the path of the program. Its Go module lacks vendored headers: a Debian package has one, and the headers that
 * decode images and sound are in ollama-headers. @throws Unavailable
 */
function findProgram(): string {
  debianPackage('nlohmann-json3-dev', '/usr/include/nlohmann/json.hpp')
  const headers = join(import.meta.dirname, 'ollama-headers')
  return goProgram('github.com/ollama/ollama', version, `-O1 -I${headers}`)
}

/** The chat template of the model in the template language of Ollama. */
const template = `{{- if .Tools }}<|im_start|>system
Functions:
<tools>
{{- range .Tools }}
{{ . }}
{{- end }}
</tools>
To call one, answer:
<tool_call>
{"name": NAME, "arguments": OBJECT}
</tool_call><|im_end|>
{{ end }}
{{- $last := "" }}{{ $role := "" }}
{{- range .Messages }}{{ $last = .Content }}{{ $role = .Role }}
{{- if eq .Role "tool" }}<|im_start|>user
<tool_response>
{{ .Content }}
</tool_response><|im_end|>
{{ else }}<|im_start|>{{ .Role }}
{{ .Content }}
{{- range .ToolCalls }}
<tool_call>
{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}
</tool_call>
{{- end }}<|im_end|>
{{ end }}
{{- end }}<|im_start|>assistant
{{ if eq $role "user" }}{{ if eq $last "Count forever." }}<|forever|>{{ else if .Tools }}<|call|>{{ end }}{{ end }}`

export const ollama: ModelServer = {
  name: 'ollama',
  preset: 'ollama',
  install: () => void findProgram(),
  async start(model, folder) {
    const port = await freePort()
    const command = findProgram()
    const env = {
      OLLAMA_HOST: `127.0.0.1:${port}`,
      OLLAMA_MODELS: join(folder, 'models'),
      OLLAMA_NUM_PARALLEL: '2',
      OLLAMA_KEEP_ALIVE: '1h',
      HOME: folder,
    }
    const readyUrl = `http://127.0.0.1:${port}/api/version`
    await using opened = new AsyncDisposableStack()
    const process = opened.use(await ServerProcess.start({ command, args: ['serve'], env, folder, readyUrl }))
    const modelFile = join(folder, 'Modelfile')
    const settings = 'PARAMETER num_ctx 2048\nPARAMETER num_thread 1\nPARAMETER temperature 0\n'
    writeFileSync(modelFile, `FROM ${model.gguf}\nTEMPLATE """${template}"""\n${settings}`)
    execFileSync(command, ['create', 'tiny', '-f', modelFile], {
      env: { ...globalThis.process.env, ...env },
      stdio: 'pipe',
      timeout: createWithinMs,
    })
    // From here on, the caller owns the process.
    opened.move()
    return { baseUrl: `http://127.0.0.1:${port}/v1`, model: 'tiny', processes: [process] }
  },
}

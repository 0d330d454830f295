// node tests/otel-collector/build.mjs: builds a small OpenTelemetry collector from its official Go modules into .cache, for
// the tests that read traces back from a real one. Needs Go and network access.
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

const timeoutMs = 900_000
const folder = join(import.meta.dirname, '..', '..', '.cache', 'otelcol')

mkdirSync(folder, { recursive: true })
const { status, error } = spawnSync('go', ['build', '-o', join(folder, 'otelcol'), '.'], {
  cwd: import.meta.dirname,
  stdio: 'inherit',
  timeout: timeoutMs,
})
if (error !== undefined) console.error(`go could not be started: ${error.message}`)
process.exitCode = status === 0 ? 0 : 1

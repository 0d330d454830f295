import { startApp } from '../../src/app/app.ts'
import { loadConfig } from '../../src/config/load.ts'
import { systemRandom } from '../../src/runtime/random.ts'

/**
 * The service in its own process, which reports how long its event loop was blocked. First argument: the configuration
 * file.
 */
const beatMs = 5

export interface Held {
  /** The longest time between two beats in milliseconds, including other processes' work. */
  readonly wallMs: number
  /** The most CPU time of this thread between two beats, in milliseconds. */
  readonly cpuMs: number
}

let held = { wallMs: 0, cpuMs: 0 }
let lastMs = performance.now()
let lastCpu = process.threadCpuUsage()

setInterval(() => {
  const nowMs = performance.now()
  const cpu = process.threadCpuUsage()
  const cpuMs = (cpu.user + cpu.system - lastCpu.user - lastCpu.system) / 1000
  held = { wallMs: Math.max(held.wallMs, nowMs - lastMs - beatMs), cpuMs: Math.max(held.cpuMs, cpuMs) }
  lastMs = nowMs
  lastCpu = cpu
}, beatMs)

const random = systemRandom()
const config = loadConfig({
  path: process.argv[2]!,
  explicit: true,
  overrides: {},
  env: {},
  random,
  localSecrets: 'make',
})
const app = await startApp(config, { log: () => {}, random })

process.on('message', (message) => {
  // Two beats later, so that a delayed beat has been counted.
  if (message === 'read') setTimeout(() => process.send?.(held), 2 * beatMs + 1)
  if (message === 'reset') held = { wallMs: 0, cpuMs: 0 }
  if (message === 'stop') void app.stop().then(() => process.exit(0))
})
// The measuring process has exited.
process.on('disconnect', () => process.exit(0))
process.send?.({ baseUrl: app.config.baseUrl })

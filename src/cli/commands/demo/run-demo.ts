import type { Invocation, Result } from '../../command.ts'
import { exitCodes } from '../../failures.ts'
import type { DemoService } from './demo-ports.ts'
import type { Demo } from './demo.ts'
import { Stage } from './stage.ts'

/** The page of demos, in the repository and in the docs of a running service. */
const page = 'docs/demo.md'

/** Runs a demo against a service of its own. Exits with 1 if the promise is broken, or if a stop signal comes first. */
export async function runDemo(invocation: Invocation, demo: Demo): Promise<Result> {
  const { terminal, line, ports } = invocation
  const stopped = new AbortController()
  terminal.onStop(() => stopped.abort())
  const isJson = line.flag('json')
  const startedMs = performance.now()
  const service = await ports.openDemoService(demo.service)
  try {
    const stage = new Stage({
      service,
      signal: stopped.signal,
      headers: demo.headers,
      terminal: isJson ? undefined : terminal,
    })
    stage.note(`svc-router demo ${demo.name} runs a separate service at ${service.baseUrl}, without configuration.`)
    stage.note(`Its providers (${demo.service.providers.join(', ')}) are simulated: no real model is called.`)
    await demo.run(stage)
    const seconds = (performance.now() - startedMs) / 1000
    const result = conclude(demo, stage, seconds)
    if (line.flag('keep')) await keep(invocation, result, service, stopped.signal)
    return line.flag('keep') ? { ...result, text: '', json: undefined } : result
  } catch (error) {
    if (!stopped.signal.aborted) throw error
    return { text: '', json: undefined, talk: ['Stopped before the end.'], exitCode: exitCodes.failure }
  } finally {
    await service.close()
  }
}

function conclude(demo: Demo, { checks }: Stage, seconds: number): Result {
  const broken = checks.filter(({ holds }) => !holds)
  const isKept = broken.length === 0 && checks.length > 0
  const words = isKept
    ? [`Promise kept: ${demo.promise}`]
    : [`Promise BROKEN: ${demo.promise}`, ...broken.map(({ claim }) => `  not true: ${claim}`)]
  return {
    text: ['', ...words, `${checks.length} checks in ${seconds.toFixed(1)} s. Read more: ${page}`].join('\n'),
    json: { demo: demo.name, promise: demo.promise, kept: isKept, checks, seconds: Number(seconds.toFixed(3)) },
    talk: [],
    exitCode: isKept ? exitCodes.ok : exitCodes.failure,
  }
}

/** Prints the result and lets the service run until a stop signal. */
async function keep(invocation: Invocation, result: Result, service: DemoService, signal: AbortSignal): Promise<void> {
  const { terminal, line } = invocation
  if (line.flag('json')) terminal.json(result.json)
  else terminal.out(result.text)
  terminal.err(
    `\nThe service runs until Ctrl-C. To repeat the requests, run in another shell:\n  export SVC_ROUTER_API_KEY=${service.key.reveal()}`,
  )
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

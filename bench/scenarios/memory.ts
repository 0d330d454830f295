import { setTimeout as delay } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import type { Gateway, GatewayName } from '../gateways.ts'
import { readRssMb } from '../proc-stat.ts'
import type { Aim, Row } from '../rows.ts'

const heldStreams = 1000
/**
 * The size of the relay's connection pool: large enough that no stream waits, because the relay is the floor for open
 * streams.
 */
const heldConnections = 1024
const openTimeoutMs = 15_000
const watchMs = 2000
const watchEveryMs = 100
const streamAimMb = 200

/**
 * The heap grows until it is collected, so growth compares the minimum of the first half of the steps with that of the
 * second.
 */
const soakSteps = 40
const soakConnections = 32
const soakStepMs = 60_000
const soakWarmUpMs = 120_000
/** Measured after as many requests to warm up, because V8's heap first has to reach its size. */
const growthAimPercent = 5

/** Peak resident memory with 1,000 streams open at once, in a new process. */
export async function measureStreams(bench: Bench): Promise<Row[]> {
  const rows: Row[] = []
  for (const name of bench.names(bench.options.quick ? ['relay', 'svc-router'] : undefined)) {
    await withFresh(bench, 'streams-1000', name, heldConnections, async (gateway) => {
      const idleMb = readRssMb(gateway.pid)
      const { peakMb, open } = await holdStreams(bench, gateway)
      const text = `< ${streamAimMb} MB with all open`
      const isMet = peakMb < streamAimMb && open === heldStreams
      const remark = `${open} of ${heldStreams} open; ${Math.round(idleMb)} MB before`
      rows.push({
        scenario: 'streams-1000',
        figure: 'RSS MB',
        gateway: name,
        values: [peakMb],
        ...(name === 'svc-router' ? { aim: { text, isMet } } : {}),
        remark,
      })
    })
  }
  return rows
}

async function holdStreams(bench: Bench, gateway: Gateway): Promise<{ peakMb: number; open: number }> {
  await bench.setMode({ name: 'hold' })
  const target = gateway.target('chat-stream')
  const durationMs = openTimeoutMs + watchMs
  const load = { connections: heldStreams, maxRequests: heldStreams, durationMs }
  const run = bench.run({ do: 'closed', target, ...load }, 1)
  // The result is awaited below. Until then, a failure must not be reported as unhandled.
  run.catch(() => undefined)
  let open = 0
  let peakMb = 0
  const openDeadline = Date.now() + openTimeoutMs
  while (open < heldStreams && Date.now() < openDeadline) {
    open = Math.max(open, (await bench.tellUpstream({ do: 'count' })).openStreams)
    peakMb = Math.max(peakMb, readRssMb(gateway.pid))
    await delay(watchEveryMs)
  }
  for (let waitedMs = 0; waitedMs < watchMs; waitedMs += watchEveryMs) {
    peakMb = Math.max(peakMb, readRssMb(gateway.pid))
    await delay(watchEveryMs)
  }
  // Queued streams open when others end, so keep ending streams until none is left.
  const ended = run.then(() => true)
  while (!(await Promise.race([ended, delay(watchEveryMs, false)]))) await bench.tellUpstream({ do: 'finish' })
  return { peakMb, open }
}

/** How much memory grows over many requests, in a new process that has already answered the same number. */
export async function measureSoak(bench: Bench): Promise<Row[]> {
  const rows: Row[] = []
  const total = bench.options.soakRequests
  for (const name of bench.names(['relay', 'svc-router'])) {
    await withFresh(bench, 'soak', name, undefined, async (gateway) => {
      const steps = await soak(bench, gateway, total)
      const growth = (Math.min(...steps.slice(soakSteps / 2)) / Math.min(...steps.slice(0, soakSteps / 2)) - 1) * 100
      const aim: Aim = { text: `growth ≤ ${growthAimPercent}%`, isMet: growth <= growthAimPercent }
      const series = steps.map((mb) => Math.round(mb)).join(' ')
      rows.push({
        scenario: 'soak',
        figure: `growth % in ${total.toLocaleString('en-US')}`,
        gateway: name,
        values: [growth],
        ...(name === 'svc-router' ? { aim } : {}),
        remark: `RSS MB ${series}`,
      })
    })
  }
  return rows
}

/** Resident memory in MB after the warm-up and after each of the `soakSteps` steps. */
async function soak(bench: Bench, gateway: Gateway, total: number): Promise<number[]> {
  const mode = { name: 'whole', bodyBytes: 1024 } as const
  await bench.setMode(mode)
  const leastBytes = await bench.check(gateway, 'chat', mode)
  const target = gateway.target('chat')
  const warmUp = { connections: soakConnections, maxRequests: total, durationMs: soakWarmUpMs }
  await bench.run({ do: 'closed', target, ...warmUp }, leastBytes)
  const steps = [readRssMb(gateway.pid)]
  const load = { connections: soakConnections, maxRequests: total / soakSteps, durationMs: soakStepMs }
  for (let step = 0; step < soakSteps; step++) {
    const report = await bench.run({ do: 'closed', target, ...load }, leastBytes)
    if (report.answers < load.maxRequests) throw new Error(`only ${report.answers} of a step's requests were answered`)
    steps.push(readRssMb(gateway.pid))
  }
  return steps
}

async function withFresh(
  bench: Bench,
  scenario: string,
  name: GatewayName,
  connections: number | undefined,
  run: (gateway: Gateway) => Promise<void>,
): Promise<void> {
  let gateway: Gateway | undefined
  try {
    gateway = await bench.startFresh(name, { connections })
    await run(gateway)
  } catch (error) {
    bench.note(scenario, name, error)
  } finally {
    await gateway?.stop()
  }
}

import { setTimeout as delay } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import type { Gateway } from '../gateways.ts'
import { readCpuUs, readRssMb } from '../proc-stat.ts'
import type { Row } from '../rows.ts'
import { pairedRatios, median } from '../statistics.ts'

const wantedIdle = 10_000
/** File descriptors that a gateway and the load generator need besides the idle connections. */
const spareFiles = 1500
const connections = 32
const maxRequests = 100_000
const settleMs = 300
/** "No slower", with a margin for the noise between two runs. */
const aimAtMost = 1.1
const mode = { name: 'whole', bodyBytes: 1024 } as const

/** CPU per request with 10,000 idle client connections and with none, alternating in one process. */
export async function measureIdle(bench: Bench): Promise<Row[]> {
  const count = Math.min(wantedIdle, bench.maxOpenFiles - spareFiles)
  const rows: Row[] = []
  for (const name of bench.names(['relay', 'svc-router'])) {
    let gateway: Gateway | undefined
    try {
      gateway = await bench.startFresh(name)
      rows.push(await compareIdle(bench, gateway, count))
    } catch (error) {
      bench.note('idle-10000', name, error)
    } finally {
      await bench.runRaw({ do: 'drop-idle' })
      await gateway?.stop()
    }
  }
  return rows
}

async function compareIdle(bench: Bench, gateway: Gateway, count: number): Promise<Row> {
  await bench.setMode(mode)
  const leastBytes = await bench.check(gateway, 'chat', mode)
  const target = gateway.target('chat')
  const warmUp = { connections, maxRequests, durationMs: bench.options.warmUpMs }
  await bench.run({ do: 'closed', target, ...warmUp }, leastBytes)
  const none: number[] = []
  const many: number[] = []
  let opened = 0
  let left = 0
  let mb = 0
  for (let round = 0; round < bench.options.longRounds; round++) {
    none.push(await cpuPerRequest(bench, gateway, leastBytes))
    opened = (await bench.runRaw({ do: 'hold-idle', port: target.port, count })).idleOpen
    // Exclude the cost of connecting: run long enough for the garbage collector to promote the new sockets.
    await bench.run({ do: 'closed', target, ...warmUp }, leastBytes)
    many.push(await cpuPerRequest(bench, gateway, leastBytes))
    mb = readRssMb(gateway.pid)
    left = (await bench.runRaw({ do: 'drop-idle' })).idleOpen
    await delay(settleMs)
  }
  const ratios = pairedRatios(many, none)
  const isMet = median(ratios) <= aimAtMost && opened === wantedIdle && left === wantedIdle
  const aim = { text: `≤ ${aimAtMost.toFixed(2)} × none`, isMet }
  return {
    scenario: 'idle-10000',
    figure: 'CPU µs/request',
    gateway: gateway.name,
    values: many,
    ratioTo: 'no idle connections',
    ratios,
    ...(gateway.name === 'svc-router' ? { aim } : {}),
    remark: `${opened} open, ${left} at the end, ${Math.round(mb)} MB`,
  }
}

async function cpuPerRequest(bench: Bench, gateway: Gateway, leastBytes: number): Promise<number> {
  const load = { connections, maxRequests, durationMs: bench.options.runMs }
  const before = readCpuUs(gateway.pid)
  const { answers } = await bench.run({ do: 'closed', target: gateway.target('chat'), ...load }, leastBytes)
  return (readCpuUs(gateway.pid) - before) / answers
}

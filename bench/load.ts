// The load generator, in its own process. It only counts and measures.
import { ClientConnection } from './client-connection.ts'
import { Clients } from './clients.ts'
import type { LoadCommand, LoadReport, Target } from './protocol.ts'
import { drainMs, Tally } from './tally.ts'

const openConnectionsAtFirst = 16
const maxOpenConnections = 256
const idleConnectsAtOnce = 200
const openTickMs = 1

/** Clients that stay connected between runs, by the name that the command gives them. */
const kept = new Map<string, Clients>()

async function runClosed(command: LoadCommand & { do: 'closed' }): Promise<LoadReport> {
  const { target, besides = [], connections, maxRequests, durationMs } = command
  const clients = new Clients([target, ...besides], connections)
  const report = await clients.run(durationMs, maxRequests)
  clients.disconnect()
  return report
}

function keep({ clients, target, connections }: LoadCommand & { do: 'keep' }): LoadReport {
  kept.set(clients, new Clients([target], connections))
  return new Tally().report()
}

async function runKept({ clients, durationMs }: LoadCommand & { do: 'run-kept' }): Promise<LoadReport> {
  return await kept.get(clients)!.run(durationMs)
}

function dropKept(): LoadReport {
  for (const clients of kept.values()) clients.disconnect()
  kept.clear()
  return new Tally().report()
}

async function runOpen(target: Target, perSecond: number, durationMs: number): Promise<LoadReport> {
  const request = Buffer.from(target.requests[0]!)
  const tally = new Tally()
  const free: ClientConnection[] = []
  const all = new Set<ClientConnection>()
  const wanted = Math.floor((perSecond * durationMs) / 1000)
  const connectOne = (firstRequest: Buffer | undefined): void => {
    all.add(
      new ClientConnection(target.port, {
        onOpen: (connection) => (firstRequest === undefined ? free.push(connection) : connection.send(firstRequest)),
        onAnswer: (connection, answer) => {
          tally.see(answer)
          tally.latenciesUs.push(Math.round(performance.now() * 1000 - connection.sentAtUs))
          connection.rest()
          free.push(connection)
        },
        onClosed: (connection, error) => {
          all.delete(connection)
          const place = free.indexOf(connection)
          if (place >= 0) free.splice(place, 1)
          if (connection.isAwaiting || error !== undefined) tally.fail(error ?? 'closed without an answer')
        },
      }),
    )
  }
  for (let index = 0; index < openConnectionsAtFirst; index++) connectOne(undefined)
  await until(() => free.length === all.size, drainMs)

  let sent = 0
  const startMs = performance.now()
  await until(() => {
    const due = Math.min(wanted, Math.floor(((performance.now() - startMs) * perSecond) / 1000))
    for (; sent < due; sent++) {
      const connection = free.pop()
      if (connection !== undefined) connection.send(request)
      else if (all.size < maxOpenConnections) connectOne(request)
      else tally.fail('no connection free')
    }
    return sent === wanted || tally.isHopeless
  }, durationMs + drainMs)
  if (!(await until(() => free.length === all.size, drainMs))) tally.fail('no answer in time')
  for (const connection of all) connection.destroy()
  return tally.report()
}

const idle = new Set<ClientConnection>()

async function holdIdle(port: number, count: number): Promise<LoadReport> {
  const tally = new Tally()
  let connecting = 0
  const connectOne = (): void => {
    connecting++
    const connection = new ClientConnection(port, {
      onOpen: (opened) => {
        connecting--
        idle.add(opened)
      },
      onAnswer: () => undefined,
      onClosed: (closed, error) => {
        if (!idle.delete(closed)) connecting--
        if (error !== undefined) tally.fail(error)
      },
    })
    void connection
  }
  const isDone = await until(() => {
    const room = Math.min(idleConnectsAtOnce - connecting, count - idle.size - connecting)
    for (let index = 0; index < room && !tally.isHopeless; index++) connectOne()
    return (idle.size >= count || tally.isHopeless) && connecting === 0
  }, drainMs)
  if (!isDone) tally.fail('not all connected in time')
  return tally.report(idle.size)
}

function dropIdle(): LoadReport {
  const report = new Tally().report(idle.size)
  for (const connection of idle) connection.destroy()
  return report
}

/** Checks a condition every millisecond; false after `timeoutMs`. */
async function until(isTrue: () => boolean, timeoutMs: number): Promise<boolean> {
  const endMs = performance.now() + timeoutMs
  return await new Promise((resolve) => {
    const timer = setInterval(() => {
      const isDone = isTrue()
      if (!isDone && performance.now() < endMs) return
      clearInterval(timer)
      resolve(isDone)
    }, openTickMs)
  })
}

async function obey(command: LoadCommand): Promise<LoadReport> {
  switch (command.do) {
    case 'closed':
      return await runClosed(command)
    case 'keep':
      return keep(command)
    case 'run-kept':
      return await runKept(command)
    case 'drop-kept':
      return dropKept()
    case 'open':
      return await runOpen(command.target, command.perSecond, command.durationMs)
    case 'hold-idle':
      return await holdIdle(command.port, command.count)
    case 'drop-idle':
      return dropIdle()
  }
}

process.on('message', (command: LoadCommand) => void obey(command).then((report) => process.send?.(report)))
process.on('disconnect', () => process.exit(0))

import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterNode } from './node.ts'
import type { PatroniCluster } from './patroni.ts'

const skewSeconds = 300
/** The pause between two faults of nodes, and between two of the database after it has recovered. */
const nodePauseMs = { least: 2_000, most: 8_000 }
const databasePauseMs = { least: 5_000, most: 20_000 }

export interface FaultTargets {
  readonly nodes: readonly ClusterNode[]
  readonly cluster: PatroniCluster
  readonly random: () => number
  readonly note: (text: string) => void
}

/** Injects random faults one after another until it is aborted, and counts them by kind. */
export class Faults {
  readonly counts = new Map<string, number>()
  readonly #targets: FaultTargets
  /** Restarts of nodes that are not complete. */
  readonly #restarts = new Set<Promise<void>>()

  constructor(targets: FaultTargets) {
    this.#targets = targets
  }

  async run(over: AbortSignal): Promise<void> {
    await Promise.all([this.#runNodeFaults(over), this.#runDatabaseFaults(over)])
    await Promise.all(this.#restarts)
  }

  async #runNodeFaults(over: AbortSignal): Promise<void> {
    const { nodes } = this.#targets
    const kinds: Record<string, (node: ClusterNode) => Promise<void>> = {
      'kill -9 of a node': (node) => this.#killNode(node),
      'SIGSTOP of a node': (node) =>
        this.#during(
          1_000,
          20_000,
          over,
          () => node.pause(),
          () => node.resume(),
        ),
      'node cannot reach the database: stalled': ({ toDatabase: link }) =>
        this.#during(
          1_000,
          20_000,
          over,
          () => link.stall(),
          () => link.heal(),
        ),
      'node cannot reach the database: closed': ({ toDatabase: link }) =>
        this.#during(
          500,
          8_000,
          over,
          () => link.cut(),
          () => link.heal(),
        ),
      'balancer cannot reach a node: stalled': ({ fromBalancer: link }) =>
        this.#during(
          1_000,
          8_000,
          over,
          () => link.stall(),
          () => link.heal(),
        ),
      'clock of a node 5 minutes ahead': (node) =>
        this.#during(
          5_000,
          40_000,
          over,
          () => node.setClock(skewSeconds),
          () => node.setClock(0),
        ),
      'clock of a node 5 minutes behind': (node) =>
        this.#during(
          5_000,
          40_000,
          over,
          () => node.setClock(-skewSeconds),
          () => node.setClock(0),
        ),
    }
    const busy = new Set<ClusterNode>()
    while (!over.aborted) {
      await this.#wait(nodePauseMs.least, nodePauseMs.most, over)
      const free = nodes.filter((node) => !busy.has(node))
      const node = free[Math.floor(this.#targets.random() * free.length)]
      if (node === undefined || over.aborted) continue
      busy.add(node)
      const name = this.#choose(Object.keys(kinds))
      this.#count(name, `node ${nodes.indexOf(node) + 1}`)
      const fault = kinds[name]!(node).finally(() => {
        busy.delete(node)
        this.#restarts.delete(fault)
      })
      this.#restarts.add(fault)
    }
  }

  async #runDatabaseFaults(over: AbortSignal): Promise<void> {
    const { cluster } = this.#targets
    const kinds = ['SIGSTOP of the primary', 'restart of the primary', 'switchover', 'kill -9 of the primary']
    kinds.push('kill -9 of a database machine')
    while (!over.aborted) {
      await this.#wait(databasePauseMs.least, databasePauseMs.most, over)
      const leader = await cluster.leader()
      if (leader === undefined || over.aborted) continue
      const name = this.#choose(kinds)
      this.#count(name, leader.name)
      if (name === 'SIGSTOP of the primary') {
        const stop = (): void => leader.signalPostgres('SIGSTOP')
        await this.#during(1_000, 20_000, over, stop, () => leader.signalPostgres('SIGCONT'))
      } else if (name === 'restart of the primary') {
        this.#targets.note(await leader.command('restart'))
      } else if (name === 'switchover') {
        this.#targets.note(await cluster.switchover())
      } else if (name === 'kill -9 of the primary') {
        leader.killPostgres()
      } else {
        await this.#during(
          1_000,
          25_000,
          over,
          () => leader.kill(),
          () => leader.start(),
        )
      }
      await cluster.waitUntilSettled()
      this.#targets.note('the database has a primary and a synchronous standby')
    }
  }

  async #killNode(node: ClusterNode): Promise<void> {
    await node.kill()
    await sleep(this.#targets.random() * 2_000)
    await node.start()
  }

  async #during(
    leastMs: number,
    mostMs: number,
    over: AbortSignal,
    begin: () => void | Promise<void>,
    end: () => void,
  ): Promise<void> {
    await begin()
    await this.#wait(leastMs, mostMs, over)
    end()
  }

  async #wait(leastMs: number, mostMs: number, over: AbortSignal): Promise<void> {
    const ms = leastMs + this.#targets.random() * (mostMs - leastMs)
    await sleep(ms, undefined, { signal: over }).catch(() => undefined)
  }

  #choose(names: readonly string[]): string {
    return names[Math.floor(this.#targets.random() * names.length)]!
  }

  #count(name: string, where: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
    this.#targets.note(`${name}: ${where}`)
  }
}

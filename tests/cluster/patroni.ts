import { chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { freePort } from '../../src/runtime/free-port.ts'
import { findPostgres, ordinaryUser } from '../postgres.ts'
import { Daemon, signalOne, signalTree } from './daemon.ts'
import { programPath } from './programs.ts'

const restLimitMs = 3_000
const startLimitMs = 90_000
const commandLimitMs = 60_000

interface ListedMember {
  readonly name: string
  readonly role: string
  readonly state: string
}

/** PostgreSQL servers under Patroni, with synchronous replication: a commit is on two servers before it is confirmed. */
export class PatroniCluster {
  readonly members: readonly Member[]
  readonly #etcd: Daemon

  private constructor(etcd: Daemon, members: readonly Member[]) {
    this.#etcd = etcd
    this.members = members
  }

  /** Starts one etcd server, which no fault touches, and `count` PostgreSQL servers. */
  static async start(folder: string, count: number): Promise<PatroniCluster> {
    const owner = ordinaryUser()
    const own = (name: string): string => {
      const path = join(folder, name)
      mkdirSync(path)
      if (owner !== undefined) chownSync(path, owner.uid, owner.gid)
      return path
    }
    const etcd = await startEtcd(own('etcd'))
    const members: Member[] = []
    const cluster = new PatroniCluster(etcd.daemon, members)
    try {
      for (let number = 1; number <= count; number++) {
        const member = await createMember(`pg${number}`, own(`pg${number}`), etcd.port)
        members.push(member)
        member.start()
        // The first one initializes the cluster.
        if (number === 1) await waitFor('a primary', async () => (await cluster.leader()) !== undefined, startLimitMs)
      }
      await cluster.waitUntilSettled()
      return cluster
    } catch (error) {
      const output = members.map((member) => `${member.name}: ${member.output}`).join('\n')
      await cluster.stop()
      throw new Error(`the cluster did not start\n${output}`, { cause: error })
    }
  }

  async leader(): Promise<Member | undefined> {
    const listed = (await this.#listed()).find(({ role, state }) => role === 'leader' && state === 'running')
    return this.members.find(({ name }) => name === listed?.name)
  }

  /** Waits until there is a primary and a synchronous standby. */
  waitUntilSettled(): Promise<void> {
    const isSettled = async (): Promise<boolean> => {
      const listed = await this.#listed()
      const works = ({ state }: ListedMember): boolean => state === 'running' || state === 'streaming'
      return ['leader', 'sync_standby'].every((role) => listed.some((member) => member.role === role && works(member)))
    }
    return waitFor('a primary with a synchronous standby', isSettled, startLimitMs)
  }

  /** Moves the primary to another server, as `patronictl switchover` does. */
  async switchover(): Promise<string> {
    const leader = await this.leader()
    if (leader === undefined) return 'no leader'
    return leader.command('switchover', { leader: leader.name })
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()))
    await this.#etcd.stop()
  }

  /** The members as the first server that answers lists them. */
  async #listed(): Promise<readonly ListedMember[]> {
    for (const { restPort } of this.members) {
      try {
        const answer = await fetch(`http://127.0.0.1:${restPort}/cluster`, { signal: AbortSignal.timeout(restLimitMs) })
        if (answer.ok) return ((await answer.json()) as { members: ListedMember[] }).members
      } catch {
        continue
      }
    }
    return []
  }
}

/** One PostgreSQL server and the Patroni that runs it. */
class Member {
  readonly name: string
  readonly port: number
  readonly restPort: number
  readonly #dataFolder: string
  readonly #patroni: Daemon

  constructor(name: string, port: number, restPort: number, dataFolder: string, patroni: Daemon) {
    this.name = name
    this.port = port
    this.restPort = restPort
    this.#dataFolder = dataFolder
    this.#patroni = patroni
  }

  get output(): string {
    return this.#patroni.output
  }

  start(): void {
    this.#patroni.start()
  }

  /** Pauses or continues PostgreSQL and all its processes, but not Patroni. */
  signalPostgres(signal: 'SIGSTOP' | 'SIGCONT'): void {
    const pid = this.#postmaster()
    if (pid !== undefined) signalTree(pid, signal)
  }

  /** Kills PostgreSQL's main process; Patroni makes another server the primary. */
  killPostgres(): void {
    const pid = this.#postmaster()
    if (pid !== undefined) signalOne(pid, 'SIGKILL')
  }

  /** Kills Patroni and PostgreSQL, as if the machine had crashed. */
  async kill(): Promise<void> {
    const pid = this.#postmaster()
    // Paused first, so that none of them starts another one meanwhile.
    const pids = pid === undefined ? [] : signalTree(pid, 'SIGSTOP')
    for (const each of pids) signalOne(each, 'SIGKILL')
    await this.#patroni.stop('SIGKILL')
  }

  /** A command of Patroni's REST API, such as `restart`. Returns what it answered. */
  async command(name: string, body: object = {}): Promise<string> {
    try {
      const answer = await fetch(`http://127.0.0.1:${this.restPort}/${name}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
        signal: AbortSignal.timeout(commandLimitMs),
      })
      return `${answer.status} ${(await answer.text()).trim()}`
    } catch (error) {
      return `failed: ${String(error)}`
    }
  }

  async stop(): Promise<void> {
    this.signalPostgres('SIGCONT')
    await this.#patroni.stop()
    const pid = this.#postmaster()
    if (pid !== undefined && existsSync(`/proc/${pid}`)) signalOne(pid, 'SIGKILL')
  }

  #postmaster(): number | undefined {
    const path = join(this.#dataFolder, 'postmaster.pid')
    if (!existsSync(path)) return undefined
    const pid = Number(readFileSync(path, 'latin1').split('\n')[0])
    // After a crash the file stays, and its number may belong to another process.
    const isOurs =
      existsSync(`/proc/${pid}/cmdline`) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(this.#dataFolder)
    return isOurs ? pid : undefined
  }
}

async function startEtcd(folder: string): Promise<{ daemon: Daemon; port: number }> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const peer = `http://127.0.0.1:${await freePort()}`
  const daemon = new Daemon(
    programPath('etcd'),
    ['--name', 'etcd', '--data-dir', join(folder, 'data'), '--listen-client-urls', url].concat(
      ['--advertise-client-urls', url, '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
      ['--initial-cluster', `etcd=${peer}`, '--log-level', 'error'],
    ),
    { ...ordinaryUser(), cwd: folder },
  )
  daemon.start()
  await waitFor('etcd', async () => (await fetch(`${url}/health`).catch(() => undefined))?.ok === true, startLimitMs)
  return { daemon, port }
}

async function createMember(name: string, folder: string, etcdPort: number): Promise<Member> {
  const programs = findPostgres()
  if (programs === undefined) throw new Error('no PostgreSQL server was found')
  const port = await freePort()
  const restPort = await freePort()
  const dataFolder = join(folder, 'data')
  const rest = `127.0.0.1:${restPort}`
  const settings = {
    scope: 'svc-router',
    name,
    restapi: { listen: rest, connect_address: rest },
    etcd3: { hosts: [`127.0.0.1:${etcdPort}`] },
    bootstrap: {
      dcs: {
        // The shortest times that Patroni allows, so that failovers fit into a test.
        ttl: 20,
        loop_wait: 1,
        retry_timeout: 3,
        synchronous_mode: true,
        // A primary that crashed is replaced at once, not waited for.
        primary_start_timeout: 0,
        postgresql: {
          use_pg_rewind: true,
          parameters: { max_connections: 100, shared_buffers: '32MB', wal_log_hints: 'on', wal_keep_size: '256MB' },
        },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }],
      pg_hba: ['local all all trust', 'host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
    },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: dataFolder,
      bin_dir: programs,
      pgpass: join(folder, 'pgpass'),
      authentication: {
        superuser: { username: 'svc' },
        replication: { username: 'replicator' },
        rewind: { username: 'svc' },
      },
      parameters: { unix_socket_directories: folder },
    },
  }
  const file = join(folder, 'patroni.yaml')
  writeFileSync(file, stringify(settings), { mode: 0o644 })
  const patroni = new Daemon(programPath('patroni'), [file], { ...ordinaryUser(), cwd: folder })
  return new Member(name, port, restPort, dataFolder, patroni)
}

/** Waits until something is true. @throws after the limit */
export async function waitFor(what: string, isTrue: () => Promise<boolean>, limitMs: number): Promise<void> {
  const giveUpAtMs = performance.now() + limitMs
  while (!(await isTrue())) {
    if (performance.now() > giveUpAtMs) throw new Error(`timed out after ${limitMs} ms: ${what}`)
    await sleep(200)
  }
}

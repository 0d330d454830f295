import { join } from 'node:path'
import { streamEvents, wholeAnswer } from './bodies.ts'
import type { RequestKind } from './bodies.ts'
import { startGateway, whyAbsent } from './gateways.ts'
import type { Gateway, GatewayName, StartOptions } from './gateways.ts'
import type { Options } from './options.ts'
import type { Child, Processes } from './processes.ts'
import type {
  LoadCommand,
  LoadReport,
  Listening,
  Target,
  UpstreamCommand,
  UpstreamMode,
  UpstreamReport,
} from './protocol.ts'

const startTimeoutMs = 10_000
const commandTimeoutMs = 5000
/** Added to a run's duration, for answers in flight and the generator's own timeouts. */
const loadGraceMs = 45_000
/** Chunk framing differs between gateways; a truncated answer differs by far more. */
const leastShareOfBody = 0.9

/** A figure that could not be measured, and why. */
export interface Trouble {
  readonly scenario: string
  readonly gateway: string
  readonly reason: string
}

/** One run: the upstream, the load generator, the gateways, and their failures. */
export class Bench {
  readonly options: Options
  readonly maxOpenFiles: number
  /** For files of this run. */
  readonly folder: string
  readonly troubles: Trouble[] = []
  readonly absent = new Map<GatewayName, string>()
  readonly #start: StartOptions
  readonly #upstream: Child
  readonly #load: Child
  readonly #shared = new Map<GatewayName, Gateway>()

  private constructor(options: Options, maxOpenFiles: number, start: StartOptions, upstream: Child, load: Child) {
    this.options = options
    this.maxOpenFiles = maxOpenFiles
    this.folder = start.folder
    this.#start = start
    this.#upstream = upstream
    this.#load = load
    for (const name of options.gateways) {
      const reason = whyAbsent(name)
      if (reason !== undefined) this.absent.set(name, reason)
    }
  }

  /** Starts the two processes that every scenario needs. `folder` is for the files of this run. */
  static async open(options: Options, processes: Processes, folder: string, maxOpenFiles: number): Promise<Bench> {
    const here = import.meta.dirname
    const upstream = processes.start('upstream', 'others', [join(here, 'upstream.ts')], { talks: true })
    const { port } = await upstream.ask<Listening>(undefined, startTimeoutMs)
    const load = processes.start('load', 'others', [join(here, 'load.ts')], { talks: true })
    return new Bench(options, maxOpenFiles, { processes, folder, upstreamPort: port }, upstream, load)
  }

  /** The gateways of this run that can be measured here, relay first. */
  names(among: readonly GatewayName[] = this.options.gateways): GatewayName[] {
    return this.options.gateways.filter((name) => among.includes(name) && !this.absent.has(name))
  }

  /** The gateways that all CPU scenarios share, and others. One that cannot start is noted and omitted from the run. */
  async shared(besides: readonly GatewayName[] = []): Promise<Gateway[]> {
    const gateways: Gateway[] = []
    for (const name of [...this.names(), ...besides]) {
      const gateway = this.#shared.get(name) ?? (await this.#startShared(name))
      if (gateway !== undefined) gateways.push(gateway)
    }
    return gateways
  }

  async #startShared(name: GatewayName): Promise<Gateway | undefined> {
    try {
      const gateway = await this.startFresh(name)
      this.#shared.set(name, gateway)
      return gateway
    } catch (error) {
      this.absent.set(name, 'it could not be started, see below')
      this.note('start', name, error)
      return undefined
    }
  }

  /** A separate gateway for one scenario, which the caller must stop. */
  async startFresh(
    name: GatewayName,
    more: Pick<StartOptions, 'connections' | 'workers' | 'databaseUrl' | 'program'> = {},
  ): Promise<Gateway> {
    await this.setMode({ name: 'whole', bodyBytes: 1024 })
    return await startGateway(name, { ...this.#start, ...more })
  }

  note(scenario: string, gateway: string, error: unknown): void {
    this.troubles.push({ scenario, gateway, reason: error instanceof Error ? error.message : String(error) })
  }

  async setMode(mode: UpstreamMode): Promise<void> {
    await this.tellUpstream({ do: 'mode', mode })
  }

  async tellUpstream(command: UpstreamCommand): Promise<UpstreamReport> {
    return await this.#upstream.ask<UpstreamReport>(command, commandTimeoutMs)
  }

  /** The address of the upstream itself, without a gateway. */
  upstreamTarget(gateway: Gateway, kind: RequestKind): Target {
    return { port: this.#start.upstreamPort, requests: gateway.target(kind).requests }
  }

  /** Runs load and returns the results. @throws Error if any answer was not a complete 200 */
  async run(command: LoadCommand, leastBytes: number): Promise<LoadReport> {
    const report = await this.runRaw(command)
    const failures = Object.entries(report.failures)
    if (failures.length > 0) throw new Error(failures.map(([reason, count]) => `${count} × ${reason}`).join(', '))
    if (report.answers === 0) throw new Error('no answer came')
    if (report.shortestBytes < leastBytes) {
      throw new Error(`an answer had ${report.shortestBytes} bytes where ${Math.ceil(leastBytes)} were due`)
    }
    return report
  }

  async runRaw(command: LoadCommand): Promise<LoadReport> {
    const ownMs = 'durationMs' in command ? command.durationMs : 0
    return await this.#load.ask<LoadReport>(command, ownMs + loadGraceMs)
  }

  /**
   * Asks once and reads the answer as a client would: the text must be complete. Returns the minimum size of later
   * answers of this kind. @throws Error if the answer differs from the upstream's
   */
  async check(gateway: Gateway, kind: RequestKind, mode: UpstreamMode): Promise<number> {
    const text = await gateway.probe(kind)
    const sent = sentText(mode)
    if (readText(kind, text) !== sent) throw new Error(`the text of a ${kind} answer is not what the upstream sent`)
    return text.length * leastShareOfBody
  }
}

function sentText(mode: UpstreamMode): string {
  if (mode.name === 'whole') return readText('chat', wholeAnswer(mode.bodyBytes))
  if (mode.name === 'hold') throw new Error('A held stream has no text to compare.')
  return readText('chat-stream', streamEvents(mode.events).join(''))
}

interface AnyEvent {
  readonly content?: readonly { readonly text?: string }[]
  readonly output?: readonly { readonly content?: AnyEvent['content'] }[]
  readonly type?: string
  readonly delta?: string | { readonly text?: string }
  readonly choices?: readonly { readonly message?: { content: string }; readonly delta?: { content?: string } }[]
}

function textIn(parts: AnyEvent['content']): string {
  return parts?.map(({ text }) => text ?? '').join('') ?? ''
}

/** The text of an answer. A stream without its last event counts as empty. */
function readText(kind: RequestKind, answer: string): string {
  if (kind === 'chat' || kind === 'chat plain')
    return (JSON.parse(answer) as AnyEvent).choices?.[0]?.message?.content ?? ''
  if (kind.startsWith('agent messages') && !kind.includes('streamed'))
    return textIn((JSON.parse(answer) as AnyEvent).content)
  if (kind.startsWith('agent responses') && !kind.includes('streamed'))
    return textIn((JSON.parse(answer) as AnyEvent).output?.[0]?.content)
  const data = answer
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice(6))
  const isChat = kind === 'chat-stream' || kind === 'chat-stream plain'
  if (isChat && data.at(-1) !== '[DONE]') return ''
  const events = data.filter((line) => line !== '[DONE]').map((line) => JSON.parse(line) as AnyEvent)
  if (isChat) return events.map((event) => event.choices?.[0]?.delta?.content ?? '').join('')
  if (events.at(-1)?.type === 'message_stop')
    return events.map((event) => (typeof event.delta === 'object' ? (event.delta.text ?? '') : '')).join('')
  if (!events.some((event) => event.type === 'response.completed')) return ''
  return events
    .map(({ type, delta }) => (type === 'response.output_text.delta' && typeof delta === 'string' ? delta : ''))
    .join('')
}

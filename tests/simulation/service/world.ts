import { AccountsError, type AccountsErrorCode } from '../../../src/accounts/accounts-error.ts'
import { changePlan, resumeAccount, suspendAccount } from '../../../src/accounts/accounts.ts'
import { controlBackend, type BackendControlDeps } from '../../../src/accounts/backends/backend-controls.ts'
import type { AccountsDeps } from '../../../src/accounts/control-plane.ts'
import { revokeKey } from '../../../src/accounts/keys.ts'
import type { ServiceEvent } from '../../../src/domain/events.ts'
import { mintKey } from '../../../src/domain/keys.ts'
import type { Plan } from '../../../src/domain/plans.ts'
import { fusionId, frontierId } from '../../../src/domain/profiles.ts'
import type { RequestOpening } from '../../../src/domain/requests.ts'
import { StoreUnavailable } from '../../../src/runtime/store-unavailable.ts'
import { Dice } from '../dice.ts'
import { ClientConnection, type ClientPlan, type Exchange } from './client.ts'
import { Disk } from './disk.ts'
import { ProcessClock, WallClock } from './process-clock.ts'
import { healthy, SimulatedProvider } from './provider.ts'
import { ResponseReader } from './response-reader.ts'
import { RunningService, type Surroundings } from './running-service.ts'
import { type Action, describeAction, type PlannedRequest, type Schedule } from './schedule.ts'
import type { Network } from './sockets.ts'
import { ownerOfUpstream, providerNames, type Template, worldStartMs } from './template.ts'
import { Timeline } from './timeline.ts'

/** How long after the faults every request must have ended. */
const longestRequestMs = 100_000
/** How long a start may take once the disk works. */
const startLimitMs = 30_000
/** When rejected credentials are tried again, at the latest. */
const rejectedSeconds = 30
/** How long an account may need to get an answer again once all faults have ended. */
const recoveryMs = 400_000
/** How long to wait before a change that the store refused is undone again. */
const undoAgainMs = 100
/** The errors of changes that there is nothing to undo. */
const nothingToUndo: readonly AccountsErrorCode[] = ['account_not_suspended', 'backend_unchanged']

/** A request that the ledger admitted. */
export interface Admitted {
  readonly opening: RequestOpening
  readonly plan: Plan
  readonly atMs: number
  readonly process: number
}

/** A change that an operator or owner made. `ackedMs`: when the service confirmed it; undefined: never. */
export interface Change {
  readonly action: Action
  readonly startedMs: number
  ackedMs: number | undefined
  failedMs: number | undefined
  /** Whether it undoes the action, or several at the end. */
  readonly isUndo: boolean
  readonly isBatch: boolean
}

/** Everything around the service, and what it sees of it. */
export class World {
  readonly template: Template
  readonly timeline: Timeline
  /** When it begins, epoch milliseconds. */
  readonly startMs: number
  readonly wall: WallClock
  readonly disk: Disk
  readonly providers: ReadonlyMap<string, SimulatedProvider>
  readonly exchanges: Exchange[] = []
  readonly admitted: Admitted[] = []
  readonly changes: Change[] = []
  readonly events: { readonly event: ServiceEvent; readonly process: number; readonly atMs: number }[] = []
  /** When processes ended without order, and when the wall clock was set. */
  readonly crashes: { readonly what: 'process' | 'machine'; readonly atMs: number }[] = []
  readonly restarts: { readonly atMs: number; untilMs: number }[] = []
  readonly steps: { readonly byMs: number; readonly atMs: number }[] = []
  readonly pauses: { readonly forMs: number; readonly atMs: number }[] = []
  /** When the disk did not work, from and until. */
  readonly outages: { readonly fromMs: number; untilMs: number }[] = []
  readonly ownerOfUpstream = ownerOfUpstream
  service: RunningService | undefined
  readonly #dice: Dice
  readonly #network: Network
  #processes = 0
  #openExchanges = 0
  #underWay = 0

  constructor(template: Template, { seed, beginsMs }: Schedule, note?: (line: string) => void) {
    this.template = template
    this.startMs = worldStartMs + beginsMs
    this.timeline = new Timeline(note)
    this.wall = new WallClock(this.timeline, this.startMs)
    this.#dice = new Dice(seed)
    this.disk = new Disk(template.database, () => this.wall.nowMs())
    this.#network = { timeline: this.timeline, dice: this.#dice, latencyMs: 1 }
    const numbers = { next: 1 }
    this.providers = new Map(
      [...providerNames, 'own'].map((name) => [`${name}.sim`, new SimulatedProvider(name, this.#network, numbers)]),
    )
  }

  get dice(): Dice {
    return this.#dice
  }

  /** Carries out a schedule, then ends all faults, and waits until everything has ended. */
  async run({ actions, endsMs }: Schedule): Promise<void> {
    await this.#start()
    const { timeline } = this
    const beganMs = timeline.nowMs
    for (const action of actions) {
      await timeline.runUntil(beganMs + action.atMs)
      timeline.note('schedule', describeAction(action))
      await this.#perform(action)
    }
    await timeline.runUntil(beganMs + endsMs)
    timeline.note('schedule', 'all faults end')
    await this.heal()
    await timeline.runUntil(timeline.nowMs + longestRequestMs, () => this.#openExchanges === 0 && this.#underWay === 0)
  }

  /** Ends every fault. */
  async heal(): Promise<void> {
    for (const provider of this.providers.values()) provider.condition = healthy
    this.#setDisk('fast')
    if (this.service === undefined) await this.#start()
    const isQuiet = (): boolean => this.#underWay === 0 && this.service?.clock.isPaused === false
    await this.timeline.runUntil(this.timeline.nowMs + longestRequestMs, isQuiet)
    if (this.changes.length === 0) return
    // Changes that were still under way may have drained a backend or suspended an account.
    let failure: unknown
    const undone = this.#change({ atMs: 0, do: 'drain', backend: '', forMs: 0 }, 'batch', async (deps) => {
      for (const backend of providerNames) await this.#undo(() => controlBackend(deps, { step: 'undrained', backend }))
      for (const { id } of this.template.accounts) await this.#undo(() => resumeAccount(deps, id))
    })
    undone.catch((error: unknown) => (failure = error))
    await this.timeline.runUntil(this.timeline.nowMs + longestRequestMs, isQuiet)
    if (failure !== undefined) throw new Error('the changes cannot be undone', { cause: failure })
    // Until every cache has noticed.
    await this.timeline.runUntil(this.timeline.nowMs + 1_000)
  }

  /**
   * Undoes a change if there is one. Repeats it while the store refuses, which it may do for some time after it has
   * recovered: otherwise, a backend would stay drained, or an account suspended. The caller limits how long it waits.
   */
  async #undo(undo: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await undo()
        return
      } catch (error) {
        if (error instanceof AccountsError && nothingToUndo.includes(error.code)) return
        if (!(error instanceof StoreUnavailable)) throw error
        await new Promise<void>((resolve) => void this.timeline.after(undoAgainMs, resolve))
      }
    }
  }

  /** Asks until there is an answer, as responses tell when to retry. Returns the last exchange. */
  async askUntilAnswered(plan: Omit<ClientPlan, 'retries'>): Promise<Exchange> {
    const untilMs = this.timeline.nowMs + recoveryMs
    let last: Exchange | undefined
    for (;;) {
      const exchange = this.#ask({ ...plan, retries: 0 }, last)
      await this.timeline.runUntil(untilMs, () => exchange.end !== undefined)
      last = exchange
      const { status, headers } = exchange.response
      // Rejected credentials name no time, since their owner has to act.
      const retryAfter = Number(headers.get('retry-after') ?? (status === 502 ? rejectedSeconds : Number.NaN))
      if (status === 200 || Number.isNaN(retryAfter) || this.timeline.nowMs >= untilMs) return exchange
      await this.timeline.runUntil(this.timeline.nowMs + retryAfter * 1_000)
    }
  }

  /** Stops the last process in order, and returns once everything is on disk. */
  async stop(): Promise<void> {
    await this.service!.stop(this.timeline, 20_000)
  }

  get openExchanges(): number {
    return this.#openExchanges
  }

  async #start(): Promise<void> {
    const number = ++this.#processes
    const { config } = this.template
    const { timeline, disk, providers } = this
    const surroundings: Surroundings = {
      config,
      timeline,
      dice: this.#dice,
      disk,
      providers,
      onAdmitted: (opening, plan) => {
        this.admitted.push({ opening, plan, atMs: timeline.nowMs, process: number })
      },
      onEvent: (event) => {
        this.events.push({ event, process: number, atMs: timeline.nowMs })
        if (timeline.isTraced) timeline.note('log', JSON.stringify(event))
      },
    }
    let failures = 0
    for (;;) {
      let started: RunningService | undefined
      let failure: unknown
      const clock = new ProcessClock(timeline, this.wall)
      RunningService.start(number, clock, surroundings).then(
        (service) => (started = service),
        (error: unknown) => (failure = error),
      )
      await timeline.runUntil(timeline.nowMs + startLimitMs, () => started !== undefined || failure !== undefined)
      this.service = started
      if (started !== undefined) {
        timeline.note('service', `process ${number} runs`)
        return
      }
      clock.die()
      disk.crash('process', this.#dice)
      // As a supervisor does.
      if (++failures > 100) throw new Error('the service does not start', { cause: failure })
      await timeline.runUntil(timeline.nowMs + 1_000)
    }
  }

  async #perform(action: Action): Promise<void> {
    const { service, timeline } = this
    switch (action.do) {
      case 'request': {
        const plan = this.#planOf(action.request)
        const first = this.#ask(plan, undefined)
        if (plan.againAfterMs !== undefined) this.#askLater(first, plan.againAfterMs)
        return
      }
      case 'provider':
        for (const provider of this.providers.values())
          if (action.provider === 'all' || action.provider === provider.name) provider.condition = action
        return
      case 'close_idle':
        return this.#provider(action.provider).closeIdle()
      case 'disk':
        this.#setDisk(action.state)
        timeline.after(action.forMs, () => this.#setDisk('fast'))
        return
      case 'crash':
        return this.#crash(action.what, action.downMs)
      case 'restart':
        if (service === undefined) return
        return this.#restart(service, action.drainMs)
      case 'pause':
        this.pauses.push({ forMs: action.forMs, atMs: timeline.nowMs })
        service?.clock.pause(action.forMs)
        return
      case 'step':
        this.steps.push({ byMs: action.byMs, atMs: timeline.nowMs })
        this.wall.steppedMs += action.byMs
        return
      default:
        return this.#startChange(action)
    }
  }

  async #restart(service: RunningService, drainMs: number): Promise<void> {
    const restart = { atMs: this.timeline.nowMs, untilMs: Number.POSITIVE_INFINITY }
    this.restarts.push(restart)
    // SIGTERM reaches a stopped process only when it goes on.
    await this.timeline.runUntil(service.clock.resumesAtMs)
    await service.stop(this.timeline, drainMs)
    this.service = undefined
    this.disk.crash('process', this.#dice)
    await this.#start()
    restart.untilMs = this.timeline.nowMs
  }

  async #crash(what: 'process' | 'machine', downMs: number): Promise<void> {
    this.service?.kill()
    this.service = undefined
    this.disk.crash(what, this.#dice)
    this.crashes.push({ what, atMs: this.timeline.nowMs })
    await this.timeline.runUntil(this.timeline.nowMs + downMs)
    await this.#start()
  }

  #startChange(action: Exclude<Action, { do: 'request' }>): void {
    const { accounts, config } = this.template
    const later = (forMs: number, back: (deps: ChangeDeps) => Promise<void>): void => {
      this.timeline.after(forMs, () => void this.#change(action, 'undo', back))
    }
    switch (action.do) {
      case 'revoke': {
        const { id } = accounts[action.account]!.keys[action.key]!
        void this.#change(action, 'first', (deps) => revokeKey(deps, id))
        return
      }
      case 'plan': {
        const { id } = accounts[action.account]!
        void this.#change(action, 'first', (deps) => changePlan(deps, id, action.plan, config.plans))
        return
      }
      case 'suspend': {
        const { id } = accounts[action.account]!
        void this.#change(action, 'first', (deps) => suspendAccount(deps, id))
        return later(action.forMs, (deps) => resumeAccount(deps, id))
      }
      case 'drain': {
        const { backend } = action
        void this.#change(action, 'first', (deps) =>
          controlBackend(deps, { step: 'drained', backend, reason: 'maintenance' }),
        )
        return later(action.forMs, (deps) => controlBackend(deps, { step: 'undrained', backend }))
      }
      default:
        throw new Error(`not a change: ${action.do}`)
    }
  }

  /** Makes a change through the running service. It may fail, as any store may. @throws what a batch throws */
  async #change(
    action: Action,
    kind: 'first' | 'undo' | 'batch',
    make: (deps: ChangeDeps) => Promise<unknown>,
  ): Promise<void> {
    const { service, timeline, template } = this
    if (service === undefined) return
    const change: Change = {
      action,
      startedMs: timeline.nowMs,
      ackedMs: undefined,
      failedMs: undefined,
      isUndo: kind === 'undo',
      isBatch: kind === 'batch',
    }
    this.changes.push(change)
    const { store } = service.storage
    const { pepper } = template.config.secrets
    const random = (count: number): Uint8Array => this.#dice.bytes(count)
    let isOver = false
    this.#underWay += 1
    // A process that died answers nobody.
    const end = (): void => {
      if (isOver) return
      isOver = true
      this.#underWay -= 1
    }
    const watch = (): void => {
      if (service.clock.isDead) end()
      else if (!isOver) timeline.after(100, watch)
    }
    watch()
    try {
      await make({ store, clock: service.clock, random, pepper, actor: { kind: 'cli' } })
      if (!isOver) change.ackedMs = timeline.nowMs
    } catch (error) {
      change.failedMs = timeline.nowMs
      timeline.note('operator', `${action.do} failed: ${String(error)}`)
      if (kind === 'batch') throw error
    } finally {
      end()
    }
  }

  #setDisk(state: Disk['state']): void {
    const { disk, outages, timeline } = this
    const open = outages.at(-1)
    if (state === 'fast' && open?.untilMs === Number.POSITIVE_INFINITY) open.untilMs = timeline.nowMs
    if (state !== 'fast' && open?.untilMs !== Number.POSITIVE_INFINITY)
      outages.push({ fromMs: timeline.nowMs, untilMs: Number.POSITIVE_INFINITY })
    disk.state = state
  }

  #provider(name: string): SimulatedProvider {
    return this.providers.get(`${name}.sim`)!
  }

  #planOf({ account, key, fusion, ...rest }: PlannedRequest): ClientPlan {
    const { keys } = this.template.accounts[account]!
    const unknown = (): string => mintKey((count) => this.#dice.bytes(count)).reveal()
    return {
      ...rest,
      account,
      key: key === 'unknown' ? unknown() : keys[key]!.key,
      profile: fusion ? fusionId : frontierId,
    }
  }

  #ask(plan: ClientPlan, retryOf: Exchange | undefined): Exchange {
    const { service, timeline } = this
    const exchange: Exchange = {
      number: this.exchanges.length,
      plan,
      process: service?.number ?? 0,
      startedMs: timeline.nowMs,
      retryOf,
      response: new ResponseReader(),
      firstContentMs: undefined,
      endedMs: undefined,
      end: undefined,
    }
    this.exchanges.push(exchange)
    if (service === undefined) {
      exchange.end = 'reset'
      exchange.endedMs = timeline.nowMs
      return exchange
    }
    timeline.note(
      'client',
      `request ${exchange.number} of account ${plan.account}: ${plan.format} ${plan.stream ? 'stream' : 'whole'} ${plan.profile}`,
    )
    this.#openExchanges += 1
    ClientConnection.open(this.#network, service, exchange, (ended) => {
      this.#openExchanges -= 1
      const { status, headers } = ended.response
      const retryAfter = headers.get('retry-after')
      const isWhole = status === 200 && ended.end === 'whole'
      if (plan.isNamed && plan.againAfterMs !== undefined && isWhole) this.#askLater(ended, plan.againAfterMs)
      if (plan.isNamed && plan.retries > 0 && ended.end !== 'whole') return this.#askLater(ended, 100)
      const mayRetry = plan.retries > 0 && status !== 200 && headers.get('x-should-retry') !== 'false'
      if (!mayRetry || ended.end === 'left') return
      this.#openExchanges += 1
      timeline.after(retryAfter === undefined ? 500 : Number(retryAfter) * 1_000, () => {
        this.#openExchanges -= 1
        this.#ask({ ...plan, retries: plan.retries - 1 }, ended)
      })
    })
    return exchange
  }

  #askLater(before: Exchange, afterMs: number): void {
    this.#openExchanges += 1
    this.timeline.after(afterMs, () => {
      this.#openExchanges -= 1
      this.#askAgain(before)
    })
  }

  /** The same named request, from a client that stays. */
  #askAgain(before: Exchange): void {
    const { plan } = before
    const retries = Math.max(0, plan.retries - 1)
    const stays = { leavesAfterMs: undefined, leavesAfterBytes: undefined, againAfterMs: undefined }
    this.#ask({ ...plan, ...stays, retries }, before)
  }
}

type ChangeDeps = AccountsDeps & BackendControlDeps

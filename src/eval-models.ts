import { openProviders } from './app/providers.ts'
import { createRuntime } from './app/runtime.ts'
import { openStore } from './app/storage.ts'
import type { Config } from './config/config.ts'
import type { EventLog } from './domain/events.ts'
import { fusionId } from './domain/profiles.ts'
import { UpstreamError } from './domain/upstream.ts'
import type { EvalCandidate, OpenedModels } from './eval/ports.ts'
import type { SimulatedVoice } from './eval/simulated-world.ts'
import type { AnswerContext } from './formats/format.ts'
import { formatById, relayById } from './formats/formats.ts'
import { alwaysGranted } from './gateway/auth/call-grant.ts'
import type { SubCall } from './gateway/fusion/engine/ports.ts'
import { callMember } from './gateway/fusion/member-call.ts'
import { membersOf } from './gateway/fusion/members.ts'
import type { Backend } from './gateway/ports.ts'
import { CircuitBreakers } from './gateway/routing/circuit-breakers.ts'
import { RetryBudget } from './gateway/routing/retry-budget.ts'
import type { Clock } from './runtime/clock.ts'
import { randomBase62 } from './runtime/ids.ts'
import type { RandomBytes } from './runtime/random.ts'

const itemIdLength = 24
/** Calls count as part of a fusion, so that a router behind a backend does not start another one. */
const depth = 1
/** The clock's timers do not keep the process alive; this interval does while a retry waits. */
const awakeEveryMs = 60_000

export interface OpenModelsOptions {
  readonly accountId: string
  readonly voice: SimulatedVoice
  readonly clock: Clock
  readonly random: RandomBytes
  readonly onBug: (error: unknown) => void
}

/**
 * Calls the models that answer `svc-router/fusion` for an account through the same providers as the service, which need
 * not run.
 */
export async function openEvalModels(
  config: Config,
  { accountId, voice, clock, random, onBug }: OpenModelsOptions,
): Promise<OpenedModels> {
  await using opened = new AsyncDisposableStack()
  const store = await openStore(config)
  opened.defer(() => store.close())
  const log: EventLog = (event) => {
    // The report counts the outcomes of calls, so only bugs are reported here.
    if (event.event === 'internal_error') onBug(Object.assign(new Error(event.name), { name: event.name }))
  }
  // Managed access stays off, because nothing here runs its three checks (contract 23.1).
  const managed = { isOn: () => false }
  const runtime = createRuntime(config, { clock, random, log })
  const providers = opened.use(await openProviders(runtime, { store, managed, simulatedVoice: voice }))
  const backends = await providers.backends.forProfile(fusionId, accountId)
  const awake = setInterval(() => {}, awakeEveryMs)
  opened.defer(() => clearInterval(awake))
  const deps = {
    formats: formatById,
    relays: relayById,
    clock,
    learned: providers.learned,
    statistics: providers.statistics,
    random: () => random(1)[0]! / 256,
    breakers: new CircuitBreakers({ clock, random: () => random(1)[0]! / 256, log }),
    budget: new RetryBudget(clock),
    log,
  }
  const nowSeconds = (): number => Math.floor(clock.nowMs() / 1000)
  const contextOf = ({ conversation }: SubCall): AnswerContext => ({
    conversation,
    requestId: runtime.mintRequestId(),
    createdAt: nowSeconds(),
    nowSeconds,
    isStored: false,
    mintId: () => randomBase62(itemIdLength, random),
  })
  const owned = opened.move()
  return {
    candidates: candidatesOf(backends, clock.nowMs()),
    callModel(member, call, signal) {
      const backend = backends.find(({ id }) => id === member.id)
      if (backend === undefined) throw new UpstreamError('unreachable')
      return callMember(
        { deps, context: contextOf(call), accountId, backend, call, depth, record: () => {}, grant: alwaysGranted },
        signal,
      )
    },
    close: () => owned.disposeAsync(),
  }
}

/** The backends as fusion sees them. Each simulated one counts as its own model family. */
function candidatesOf(backends: readonly Backend[], nowMs: number): EvalCandidate[] {
  return membersOf(backends, nowMs).map((member, index) => {
    const { id, simulated } = backends[index]!
    return { ...member, simulated, family: simulated ? id : member.family }
  })
}

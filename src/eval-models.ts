import type { Config } from './config/config.ts'
import type { Clock } from './runtime/clock.ts'
import type { EventLog } from './domain/events.ts'
import { idMinter, randomBase62 } from './runtime/ids.ts'
import { fusionId } from './domain/profiles.ts'
import type { RandomBytes } from './runtime/random.ts'
import { UpstreamError } from './domain/upstream.ts'
import type { EvalCandidate, OpenedModels } from './eval/ports.ts'
import type { SimulatedVoice } from './eval/simulated-world.ts'
import { formatById, relayById } from './formats/formats.ts'
import type { AnswerContext } from './formats/format.ts'
import { membersOf } from './gateway/fusion/members.ts'
import type { SubCall } from './gateway/fusion/engine/ports.ts'
import { alwaysGranted } from './gateway/auth/call-grant.ts'
import { callMember } from './gateway/fusion/member-call.ts'
import type { Backend } from './gateway/ports.ts'
import { CircuitBreakers } from './gateway/routing/circuit-breakers.ts'
import { RetryBudget } from './gateway/routing/retry-budget.ts'
import { openProviders } from './app/providers.ts'
import { openStore } from './app/storage.ts'

const itemIdLength = 24
/** A call is part of a fusion: a router behind a backend is not to begin another one. */
const depth = 1
/** The clock's timers do not keep the process alive, and while a retry is waited for nothing else does. */
const awakeEveryMs = 60_000

export interface OpenModelsOptions {
  readonly accountId: string
  readonly voice: SimulatedVoice
  readonly clock: Clock
  readonly random: RandomBytes
  readonly onBug: (error: unknown) => void
}

/** Opens the way to the models that deliberate for an account, through the same providers as the service, without the service. */
export async function openEvalModels(
  config: Config,
  { accountId, voice, clock, random, onBug }: OpenModelsOptions,
): Promise<OpenedModels> {
  await using opened = new AsyncDisposableStack()
  const store = await openStore(config)
  opened.defer(() => store.close())
  const log: EventLog = (event) => {
    // What happens to calls is in the figures; a bug is told as bugs are.
    if (event.event === 'internal_error') onBug(Object.assign(new Error(event.name), { name: event.name }))
  }
  // Nothing here watches over the three checks of managed access: it stays shut (contract 23.1).
  const managed = { isOn: () => false }
  const providers = opened.use(
    await openProviders(config, { storage: { store }, managed, clock, random, log, simulatedVoice: voice }),
  )
  const backends = await providers.backends.forProfile(fusionId, accountId)
  const awake = setInterval(() => {}, awakeEveryMs)
  opened.defer(() => clearInterval(awake))
  const deps = {
    formats: formatById,
    relays: relayById,
    clock,
    learned: providers.learned,
    breakers: new CircuitBreakers({ clock, random: () => random(1)[0]! / 256, log }),
    budget: new RetryBudget(),
    log,
  }
  const nowSeconds = (): number => Math.floor(clock.nowMs() / 1000)
  const mintRequestId = idMinter('req_', () => clock.nowMs(), random)
  const contextOf = ({ conversation }: SubCall): AnswerContext => ({
    conversation,
    requestId: mintRequestId(),
    createdAt: nowSeconds(),
    nowSeconds,
    isStored: false,
    mintId: () => randomBase62(itemIdLength, random),
  })
  const owned = opened.move()
  return {
    candidates: candidatesOf(backends),
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

/** The backends as fusion sees them. Simulated ones pretend to be of different families. */
function candidatesOf(backends: readonly Backend[]): EvalCandidate[] {
  return membersOf(backends).map((member, place) => {
    const { id, simulated } = backends[place]!
    return { ...member, simulated, family: simulated ? id : member.family }
  })
}

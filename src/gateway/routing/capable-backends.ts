import type { Conversation, InputPart } from '../../domain/conversation.ts'
import { estimateTokens } from '../../domain/estimate-tokens.ts'
import type { CapabilityId } from '../../domain/model-facts.ts'
import type { Need } from '../../domain/upstream.ts'
import type { Backend } from '../ports.ts'
import type { LearnedLimits } from './learned-limits.ts'
import { notCapable } from './rejection-errors.ts'

/** The configured capability that corresponds to each need. */
const declaredAs: Readonly<Partial<Record<Need, CapabilityId>>> = {
  images: 'image_input',
  files: 'file_input',
  tools: 'tools',
  structured_outputs: 'structured_outputs',
}
const declarable = Object.keys(declaredAs) as Need[]
const partNeeds: Readonly<Partial<Record<InputPart['type'], Need>>> = { image: 'images', audio: 'audio', file: 'files' }

export interface CapableBackends {
  /** The backends to try, in two groups: first those with no known obstacle. Each group is in the configured order. */
  readonly capable: readonly Backend[]
  /** The second group; undefined if it is empty. */
  readonly doubtful?: ReadonlySet<Backend> | undefined
  /** What the first excluded backend lacks; undefined if none was excluded. */
  readonly lacking?: Need | undefined
}

/**
 * The backends that can do what a request needs. A declared lack excludes a backend. A learned lack, or a window that
 * an estimate says is too small, only moves it to the end, because both may be wrong.
 */
function capableBackends(
  backends: readonly Backend[],
  conversation: Conversation,
  learned: LearnedLimits,
): CapableBackends {
  const needs = needsOf(conversation)
  let lacking: Need | undefined
  let tokens: number | undefined
  const first: Backend[] = []
  const last: Backend[] = []
  for (const backend of backends) {
    const declared = needs.find((need) => lacksAsDeclared(backend, need))
    if (declared !== undefined) {
      lacking ??= declared
      continue
    }
    const window = learned.windowOf(backend)
    if (window !== undefined) tokens ??= estimateTokens(conversation)
    const isDoubtful = (window !== undefined && tokens! > window) || needs.some((need) => learned.lacks(backend, need))
    if (isDoubtful) last.push(backend)
    else first.push(backend)
  }
  if (last.length === 0) return { capable: first, lacking }
  return { capable: [...first, ...last], doubtful: new Set(last), lacking }
}

/**
 * The capable backends for a request; `inputField` is its format's (contract 7.14).
 * @throws ServiceError `unsupported_parameter` that names what no backend can do
 */
export function assertCapable(
  backends: readonly Backend[],
  conversation: Conversation,
  inputField: string,
  learned: LearnedLimits,
): CapableBackends {
  if (!backends.some((backend) => isLimited(backend, learned))) return { capable: backends }
  const found = capableBackends(backends, conversation, learned)
  const { capable, lacking } = found
  if (capable.length === 0 && lacking !== undefined) throw notCapable(lacking, conversation.profile, inputField)
  return found
}

/**
 * The capable backends, where it is too late to reject the request: all backends if none is capable, so that their
 * own errors are returned.
 */
export function capableFirst(
  backends: readonly Backend[],
  conversation: Conversation,
  learned: LearnedLimits,
): readonly Backend[] {
  if (!backends.some((backend) => isLimited(backend, learned))) return backends
  const { capable } = capableBackends(backends, conversation, learned)
  return capable.length === 0 ? backends : capable
}

/** Whether any limit of a backend is known. For most there is none, and requests need not be inspected. */
function isLimited(backend: Backend, learned: LearnedLimits): boolean {
  if (backend.contextWindow !== undefined || learned.knows(backend)) return true
  return backend.capabilities !== undefined && declarable.some((need) => lacksAsDeclared(backend, need))
}

function lacksAsDeclared({ capabilities }: Backend, need: Need): boolean {
  const declared = declaredAs[need]
  return declared !== undefined && capabilities?.[declared] === false
}

/** What a request needs that not every backend can do. */
export function needsOf({ turns, tools, toolChoice, outputFormat }: Conversation): readonly Need[] {
  const needs: Need[] = []
  for (const turn of turns) {
    if (turn.role === 'assistant') continue
    for (const { type } of turn.parts) {
      const need = partNeeds[type]
      if (need !== undefined && !needs.includes(need)) needs.push(need)
    }
  }
  if (toolChoice?.type !== 'none' && tools.some(({ type }) => type !== 'hosted')) needs.push('tools')
  if (outputFormat?.type === 'json_schema') needs.push('structured_outputs')
  return needs
}

import type { KnownNode, ServiceHealth } from './service-health.ts'

/** How the state of a node is displayed to operators, in the console and by `status`. */
export interface NodeStatusText {
  readonly tone: 'good' | 'warn' | 'bad'
  readonly words: string
}

/** Turns what a node reported into a color and words. */
export function describeNode(node: KnownNode, health: Pick<ServiceHealth, 'isSilent'>): NodeStatusText {
  if (health.isSilent(node)) return { tone: 'warn', words: 'no heartbeat' }
  if (node.report === undefined) return { tone: 'warn', words: 'starting, or an older version' }
  const [reason] = node.report.reasons
  if (node.report.isDraining) return { tone: 'warn', words: 'draining' }
  return reason === undefined
    ? { tone: 'good', words: 'serving' }
    : { tone: 'bad', words: `rejects requests: ${reason}` }
}

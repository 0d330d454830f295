import { ChainFollower, chainStart, readLink } from '../../domain/audit-chain.ts'
import type { Checkpoint } from '../../domain/checkpoint.ts'
import { type AuditVerdict, verdictOf } from './audit.ts'

/**
 * Verifies an exported log line by line, without a database (contract 25.7). `proven` are checkpoints known to be
 * authentic, or trusted because they were stored where nobody could change them.
 */
export async function verifyExport(
  lines: AsyncIterable<string> | Iterable<string>,
  proven: readonly Checkpoint[],
): Promise<AuditVerdict> {
  const follower = new ChainFollower(chainStart, proven)
  for await (const line of lines) {
    const at = follower.follow(readLink(line))
    if (at !== undefined) return { state: 'broken', at }
  }
  const at = follower.end()
  return at === undefined ? verdictOf(follower.position, proven) : { state: 'broken', at }
}

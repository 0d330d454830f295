import { defaultOverlap, rotateKey } from '../../accounts/keys.ts'
import { rotationOverlapsMs, type RotationOverlap } from '../../domain/keys.ts'
import type { Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeTime } from '../terminal/table.ts'

const overlaps = Object.keys(rotationOverlapsMs)

export const keysRotate: Command = {
  name: 'keys rotate',
  summary: 'Replace a key. The old key keeps working for a while.',
  arguments: ['ID'],
  options: [
    {
      name: 'overlap',
      value: 'TIME',
      summary: `How long the old key keeps working: ${overlaps.join(', ')}. Default ${defaultOverlap}.`,
    },
  ],
  example: 'keys rotate ID --overlap 1h',
  run(invocation) {
    const id = invocation.argument(0, 'the id of the key', 'keys list')
    const overlap = invocation.line.option('overlap') ?? defaultOverlap
    if (!isOverlap(overlap))
      throw new CommandError(
        exitCodes.usage,
        `--overlap must be one of ${overlaps.join(', ')}`,
        invocation.command('keys rotate ID --overlap 24h'),
      )
    return invocation.withStore(async ({ accountsDeps }) => {
      const { key, stored, endsAtMs } = await rotateKey(accountsDeps, id, overlap)
      return {
        text: key.reveal(),
        json: {
          id: stored.id,
          name: stored.name,
          account: stored.accountId,
          key: key.reveal(),
          replaces: id,
          replaced_key_ends_at_ms: endsAtMs,
        },
        talk: [
          `Created key "${stored.name}" (${stored.id}). It is shown only once, so save it now.`,
          overlap === 'now' ? 'The old key no longer works.' : `The old key works until ${writeTime(endsAtMs)}.`,
          `Next: replace the old key wherever it is used, then check: ${invocation.command('keys list')}`,
        ],
      }
    })
  },
}

function isOverlap(text: string): text is RotationOverlap {
  return overlaps.includes(text)
}

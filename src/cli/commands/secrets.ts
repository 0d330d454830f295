import type { Config } from '../../config/config.ts'
import { counted } from '../../runtime/counted.ts'
import type { Command, Invocation } from '../command.ts'
import { exitCodes } from '../failures.ts'

export const secretsStatus: Command = {
  name: 'secrets status',
  summary: 'Tell whether the previous sealing key is still needed.',
  arguments: [],
  options: [],
  example: 'secrets status',
  run: (invocation) =>
    invocation.withStore(async ({ config, sealed }) => {
      const others = await sealed.countOthers()
      return {
        text:
          others === 0
            ? 'Every value is encrypted with the current sealing key.'
            : `${counted(others, 'value')} not encrypted with the current sealing key.`,
        json: { other_key: others },
        talk: [
          others === 0
            ? removable(config)
            : `Encrypt them with the current one: ${invocation.command('secrets reseal')}`,
        ],
      }
    }),
}

export const secretsReseal: Command = {
  name: 'secrets reseal',
  summary: 'Encrypt all stored values with the current sealing key, while the service runs. Can be repeated.',
  arguments: [],
  options: [],
  example: 'secrets reseal',
  run: (invocation: Invocation) =>
    invocation.withStore(async ({ config, sealed }) => {
      const { resealed, unreadable } = await sealed.reseal()
      return {
        text: `encrypted ${counted(resealed, 'value')} with the current sealing key`,
        json: { resealed, unreadable },
        talk: [
          unreadable === 0
            ? removable(config)
            : `${counted(unreadable, 'value')} cannot be decrypted with the configured keys. If you still have the key, configure it as the previous one (secrets.previous_sealing_key_env) and run this again.`,
        ],
        exitCode: unreadable === 0 ? exitCodes.ok : exitCodes.failure,
      }
    }),
}

function removable({ secrets: { previousSealingKey } }: Config): string {
  return previousSealingKey === undefined
    ? 'No previous sealing key is configured.'
    : 'The database no longer needs the previous sealing key. Backups that were taken before do: keep it with them.'
}

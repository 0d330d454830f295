import type { Config } from '../../config/config.ts'
import { counted } from '../../runtime/counted.ts'
import type { Command, Invocation } from '../command.ts'
import { exitCodes } from '../failures.ts'

export const secretsStatus: Command = {
  name: 'secrets status',
  summary:
    'Show whether you can remove the previous sealing key (it encrypts provider credentials and stored answers) and the previous pepper (it hashes API keys) from the configuration.',
  arguments: [],
  options: [],
  example: 'secrets status',
  run: (invocation) =>
    invocation.withStore(async ({ config, sealed }) => {
      const [others, unreadable] = await Promise.all([sealed.countOthers(), sealed.countUnreadable()])
      const isPepperChanging = config.secrets.previousPepper !== undefined
      const keys = isPepperChanging ? await sealed.countKeys() : 0
      return {
        text: [
          others === 0
            ? 'Every value is encrypted with the current sealing key.'
            : `Not encrypted with the current sealing key: ${counted(others, 'value')}.`,
          ...(unreadable === 0
            ? []
            : [`Encrypted with a key that is not configured: ${counted(unreadable, 'value')}.`]),
          ...(isPepperChanging ? [tellKeys(keys)] : []),
        ].join('\n'),
        json: { other_key: others, unknown_key: unreadable, ...(isPepperChanging ? { other_pepper: keys } : {}) },
        talk: [
          ...(unreadable === 0 ? [] : [needsKey(unreadable)]),
          ...(others > unreadable
            ? [`Encrypt them with the current one: ${invocation.command('secrets reseal')}`]
            : []),
          ...(others === 0 ? [removable(config)] : []),
        ],
      }
    }),
}

export const secretsReseal: Command = {
  name: 'secrets reseal',
  summary: 'Re-encrypt all stored values with the current sealing key. The service can keep running. Safe to repeat.',
  arguments: [],
  options: [],
  example: 'secrets reseal',
  run: (invocation: Invocation) =>
    invocation.withStore(async ({ config, sealed }) => {
      const { resealed, unreadable } = await sealed.reseal()
      return {
        text: `encrypted ${counted(resealed, 'value')} with the current sealing key`,
        json: { resealed, unreadable },
        talk: [unreadable === 0 ? removable(config) : `${needsKey(unreadable)} Then run this again.`],
        exitCode: unreadable === 0 ? exitCodes.ok : exitCodes.failure,
      }
    }),
}

function tellKeys(keys: number): string {
  return keys === 0
    ? 'Every API key has been used since the pepper changed. The database no longer needs the previous pepper.'
    : `Not used since the pepper changed: ${counted(keys, 'API key')}. Without the previous pepper, such keys would stop working.`
}

function needsKey(unreadable: number): string {
  return `${counted(unreadable, 'value')} cannot be decrypted with the configured keys. If you still have the key, configure it as the previous one (secrets.previous_sealing_key_env).`
}

function removable({ secrets: { previousSealingKey } }: Config): string {
  return previousSealingKey === undefined
    ? 'No previous sealing key is configured.'
    : 'The database no longer needs the previous sealing key. Older backups still need it, so store it with them.'
}

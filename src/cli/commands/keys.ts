import { AccountsError } from '../../accounts/accounts-error.ts'
import {
  createKey,
  effectiveState,
  maxListedKeys,
  limitKey,
  defaultOverlap,
  rotateKey,
  revokeKey,
} from '../../accounts/keys.ts'
import { noLimits } from '../../domain/key-limits.ts'
import { rotationOverlapsMs, type RotationOverlap } from '../../domain/keys.ts'
import { quoteForShell } from '../../runtime/quote-for-shell.ts'
import { accountOption, type Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { limitOptions, readLimits, writeLimits, hasLimits } from '../key-limits.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { newName } from '../value-shapes.ts'

const defaultName = 'key'

export const keysCreate: Command = {
  name: 'keys create',
  summary: 'Create a key and print it. It is shown only once.',
  arguments: [],
  options: [
    { name: 'name', value: 'NAME', shape: newName, summary: `What the key is for. Default "${defaultName}".` },
    ...limitOptions,
    accountOption,
  ],
  example: 'keys create --name laptop',
  run: (invocation) =>
    invocation.withStore(async ({ config, accountsDeps, account }) => {
      const owner = await account()
      const { id, name } = owner
      const limits = readLimits(invocation.line, noLimits, owner, config)
      const { key, stored } = await createKey(accountsDeps, id, invocation.line.option('name') ?? defaultName, limits)
      return {
        text: key.reveal(),
        json: { id: stored.id, name: stored.name, account: id, key: key.reveal(), limits: stored.limits },
        talk: [
          `Created key "${stored.name}" (${stored.id}) for account ${name}. It is shown only once, so save it now.`,
          `Next: export SVC_ROUTER_API_KEY=…, or list all keys: ${invocation.command('keys list')}`,
        ],
      }
    }),
}

export const keysList: Command = {
  name: 'keys list',
  summary: `List the keys of an account, including revoked ones, newest first, at most ${maxListedKeys}.`,
  arguments: [],
  options: [accountOption],
  example: 'keys list --json',
  run: (invocation) =>
    invocation.withStore(async ({ accountsDeps, account }) => {
      const { id } = await account()
      const nowMs = accountsDeps.clock.nowMs()
      const keys = (await accountsDeps.store.listKeys(id, maxListedKeys)).map((key) => ({
        ...key,
        state: effectiveState(key, nowMs),
      }))
      const rows = keys.map((key) => [
        key.id,
        key.name,
        key.hint,
        key.state,
        writeTime(key.createdAtMs),
        key.endsAtMs === null ? '' : writeTime(key.endsAtMs),
        writeLimits(key.limits),
      ])
      return {
        text:
          keys.length === 0 ? '' : writeTable([['ID', 'NAME', 'KEY', 'STATE', 'CREATED', 'ENDS', 'LIMITS'], ...rows]),
        json: keys,
        talk:
          keys.length === 0
            ? [`No keys yet. Next: ${invocation.command('keys create')}`]
            : [`Next: ${invocation.command('keys rotate ID')}`],
      }
    }),
}

export const keysLimit: Command = {
  name: 'keys limit',
  summary:
    'Restrict a key to certain profiles or IP addresses, or limit its requests per minute. Limits that you do not specify stay the same.',
  arguments: ['ID'],
  options: limitOptions,
  example: 'keys limit ID --profile svc-router/frontier --per-minute 30 --address 203.0.113.0/24',
  run(invocation) {
    const id = invocation.argument(0, 'the ID of the key', 'keys list')
    if (!hasLimits(invocation.line)) {
      throw new CommandError(
        exitCodes.usage,
        'there is nothing to change',
        `specify a limit: ${invocation.command(`keys limit ${quoteForShell(id.slice(0, 64))} --per-minute 30`)}`,
      )
    }
    return invocation.withStore(async ({ config, accountsDeps }) => {
      const key = await accountsDeps.store.findKey(id)
      if (key === undefined) throw new AccountsError('key_unknown')
      const account = await accountsDeps.store.findAccount(key.accountId)
      const { limits } = await limitKey(accountsDeps, id, readLimits(invocation.line, key.limits, account, config))
      const words = writeLimits(limits)
      return {
        text: key.id,
        json: { id: key.id, name: key.name, account: key.accountId, limits },
        talk: [
          `Key "${key.name}": ${words === '' ? 'no key limits' : words}. Running servers apply this within a second.`,
          `Next: ${invocation.command('keys list')}`,
        ],
      }
    })
  },
}

const overlaps = Object.keys(rotationOverlapsMs)

export const keysRotate: Command = {
  name: 'keys rotate',
  summary: `Replace a key. The old key keeps working for ${defaultOverlap}, or for the time in --overlap.`,
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
    const id = invocation.argument(0, 'the ID of the key', 'keys list')
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

/** Cannot be undone, so it asks for `--yes` (contract 33.8). */
export const keysRevoke: Command = {
  name: 'keys revoke',
  summary: 'Revoke a key permanently.',
  arguments: ['ID'],
  options: [{ name: 'yes', summary: 'Required: revoking a key cannot be undone.' }],
  example: 'keys revoke ID --yes',
  run(invocation) {
    const id = invocation.argument(0, 'the ID of the key', 'keys list')
    if (!invocation.line.flag('yes')) {
      throw new CommandError(
        exitCodes.usage,
        'revoking a key cannot be undone',
        `to confirm: ${invocation.command(`keys revoke ${quoteForShell(id.slice(0, 64))} --yes`)}`,
      )
    }
    return invocation.withStore(async ({ accountsDeps }) => {
      const key = await revokeKey(accountsDeps, id)
      return {
        text: key.id,
        json: { id: key.id, name: key.name, account: key.accountId, state: 'revoked' },
        talk: [
          `Key "${key.name}" is revoked. Running servers reject it within a second.`,
          `Next: ${invocation.command('keys create')}`,
        ],
      }
    })
  },
}

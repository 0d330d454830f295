import {
  createAdminToken,
  defaultTokenDays,
  maxListedTokens,
  maxTokenDays,
  revokeAdminToken,
  stateOf,
} from '../../accounts/admin/admin-tokens.ts'
import { adminScopes, type AdminScope } from '../../domain/admin-tokens.ts'
import { readWhole } from '../command-line.ts'
import type { Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { newName, oneOf, whole } from '../value-shapes.ts'

export const adminTokensCreate: Command = {
  name: 'admin-tokens create',
  summary: 'Create a token for the admin API and print it. It is shown only once.',
  arguments: ['NAME'],
  shapes: { NAME: newName },
  options: [
    {
      name: 'scope',
      value: 'SCOPE',
      shape: oneOf(adminScopes),
      summary: `What the token may do: ${adminScopes.join(' or ')}. Default ${adminScopes[0]}.`,
    },
    {
      name: 'days',
      value: 'DAYS',
      shape: whole(1, maxTokenDays, defaultTokenDays),
      summary: `How many days the token works, at most ${maxTokenDays}. Default ${defaultTokenDays}.`,
    },
  ],
  example: 'admin-tokens create deploy --scope write',
  run(invocation) {
    const { line } = invocation
    const name = invocation.argument(0, 'the name of the token', 'admin-tokens create NAME')
    const given = line.option('scope') ?? adminScopes[0]
    const scope = adminScopes.find((known): known is AdminScope => known === given) ?? adminScopes[0]
    const days = readWhole(line, 'days', 1, maxTokenDays) ?? defaultTokenDays
    return invocation.withStore(async ({ adminTokens, config }) => {
      const { secret, token } = await createAdminToken(adminTokens, { name, scope, days })
      return {
        text: secret.reveal(),
        json: { ...token, token: secret.reveal() },
        talk: [
          `Created token "${token.name}" (${token.id}), which may ${scope} until ${writeTime(token.expiresAtMs)}. It is shown only once, so save it now.`,
          ...(config.adminApi
            ? []
            : ['The admin API is off. To turn it on, add "admin_api: {enabled: true}" and restart.']),
          `Next: ${invocation.command('admin-tokens list')}`,
        ],
      }
    })
  },
}

export const adminTokensList: Command = {
  name: 'admin-tokens list',
  summary: `List the tokens for the admin API, including expired and revoked ones, newest first, at most ${maxListedTokens}.`,
  arguments: [],
  options: [],
  example: 'admin-tokens list',
  run: (invocation) =>
    invocation.withStore(async ({ adminTokens }) => {
      const nowMs = adminTokens.clock.nowMs()
      const listed = await adminTokens.store.listAdminTokens(maxListedTokens)
      const tokens = listed.map((token) => ({ ...token, state: stateOf(token, nowMs) }))
      const rows = tokens.map(({ id, name, hint, scope, state, operatorId, expiresAtMs, lastUsedAtMs }) => [
        id,
        name,
        hint,
        scope,
        state,
        operatorId ?? 'cli',
        writeTime(expiresAtMs),
        lastUsedAtMs === null ? 'never' : writeTime(lastUsedAtMs),
      ])
      const headings = ['ID', 'NAME', 'TOKEN', 'SCOPE', 'STATE', 'BY', 'EXPIRES', 'LAST USED']
      return {
        text: rows.length === 0 ? '' : writeTable([headings, ...rows]),
        json: tokens,
        talk: [
          ...(rows.length === 0 ? ['There are no tokens yet.'] : []),
          `Next: ${invocation.command(rows.length === 0 ? 'admin-tokens create NAME' : 'admin-tokens revoke ID --yes')}`,
        ],
      }
    }),
}

export const adminTokensRevoke: Command = {
  name: 'admin-tokens revoke',
  summary: 'Permanently revoke a token for the admin API.',
  arguments: ['ID'],
  options: [{ name: 'yes', summary: 'Required: revoking a token cannot be undone.' }],
  example: 'admin-tokens revoke ID --yes',
  run(invocation) {
    const id = invocation.argument(0, 'the ID of the token', 'admin-tokens list')
    if (!invocation.line.flag('yes'))
      throw new CommandError(
        exitCodes.usage,
        'revoking a token cannot be undone',
        `to confirm: ${invocation.command('admin-tokens revoke ID --yes')}`,
      )
    return invocation.withStore(async ({ adminTokens }) => {
      await revokeAdminToken(adminTokens, id)
      return {
        text: id,
        json: { id, state: 'revoked' },
        talk: ['The token no longer works.', `Next: ${invocation.command('admin-tokens list')}`],
      }
    })
  },
}

import { type CheckedBackup, isSound, type TakenBackup } from '../../accounts/backups.ts'
import { breakReasons } from '../../domain/audit-chain.ts'
import type { BackupManifest, Reapplied } from '../../domain/backup.ts'
import { counted } from '../../runtime/counted.ts'
import { quoteForShell } from '../../runtime/quote-for-shell.ts'
import { readWhole } from '../command-line.ts'
import type { Command, Invocation } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { whole } from '../value-shapes.ts'

const maxKept = 10_000

export const backup: Command = {
  name: 'backup',
  summary:
    'Copy all data into one signed file. Two secrets are not in it: the sealing key (it encrypts provider credentials and stored answers) and the pepper (it hashes API keys). Store them separately. The service can keep running.',
  arguments: ['FILE'],
  options: [
    {
      name: 'keep',
      value: 'COUNT',
      shape: whole(1, maxKept, 14),
      summary: 'If FILE is a folder: the number of backups to keep in it. Older ones are deleted. Default: all.',
    },
  ],
  example: 'backup /var/backups/svc-router --keep 14',
  async run(invocation) {
    const { line, ports } = invocation
    const target = invocation.argument(0, 'the file or folder to write to', 'backup FILE')
    const keep = readWhole(line, 'keep', 1, maxKept)
    const config = invocation.loadStored()
    const taken = await ports.backup(config, { target, keep })
    return {
      text: writeTaken(taken),
      json: {
        path: taken.path,
        bytes: taken.bytes,
        sound: isSound(taken),
        deleted: taken.deleted,
        ...plainContents(taken),
      },
      talk: [
        ...problemsOf(taken, invocation),
        `It does not contain the secrets, and cannot be used without them: store ${taken.manifest.secrets.join(' and ')} somewhere else.`,
        `Verify it: ${invocation.command(`restore ${quoteForShell(taken.path)} --check`)}`,
      ],
      exitCode: isSound(taken) ? exitCodes.ok : exitCodes.failure,
    }
  },
}

export const restore: Command = {
  name: 'restore',
  summary: 'Verify a backup, and restore it into an empty data folder or PostgreSQL database.',
  arguments: ['FILE'],
  options: [
    { name: 'check', summary: 'Only verify the backup. Changes nothing.' },
    {
      name: 'since',
      value: 'FILE',
      summary:
        'The exported audit log of the lost service. Revocations and removals after the backup are applied again.',
    },
    {
      name: 'accept-lost-changes',
      summary:
        'Required without --since, except with --check. Keys that were revoked after the backup will work again.',
    },
    {
      name: 'trust',
      summary:
        'Also accept a backup whose signature, audit log, or quotas are wrong. Use it only if nobody could have changed the file.',
    },
  ],
  example: 'restore backup.db --since audit.jsonl --data ./restored',
  async run(invocation) {
    const { line, ports } = invocation
    const file = invocation.argument(0, 'the backup', 'restore FILE')
    const trust = line.flag('trust')
    if (line.flag('check'))
      return tellChecked(await ports.inspectBackup(invocation.load('pretend'), { file, trust }), invocation)
    const since = line.option('since')
    if ((since === undefined) !== line.flag('accept-lost-changes')) throw undecided(invocation, file)
    const restored = await ports.restore(invocation.load('pretend'), { file, since, trust })
    return {
      text: writeContents(restored.manifest),
      json: { ...plainContents(restored), reapplied: restored.reapplied },
      talk: [
        ...problemsOf(restored, invocation),
        ...tellChanges(restored.reapplied, restored.manifest, since),
        'Everyone must sign in again: earlier sessions and sign-in links no longer work.',
        `Next: ${invocation.command('start')}`,
      ],
    }
  },
}

/** Old data is dangerous only by what was taken away since, so somebody has to decide about that. */
function undecided(invocation: Invocation, file: string): CommandError {
  const again = (option: string): string => invocation.command(`restore ${quoteForShell(file)} ${option}`)
  return new CommandError(
    exitCodes.usage,
    'keys that were revoked after the backup would work again: choose either --since or --accept-lost-changes',
    `export the audit log of the lost data folder (audit export > audit.jsonl), then: ${again('--since audit.jsonl')}. If it is lost, or the service was stopped before the backup: ${again('--accept-lost-changes')}`,
  )
}

function tellChecked(
  checked: CheckedBackup,
  invocation: Invocation,
): { text: string; json: unknown; talk: readonly string[] } {
  return {
    text: writeContents(checked.manifest),
    json: { ...plainContents(checked), sound: isSound(checked) },
    talk: [...problemsOf(checked, invocation), 'This backup can be restored.'],
  }
}

function writeTaken({ path, bytes, manifest, deleted }: TakenBackup): string {
  const size = `${(bytes / 1_000_000).toFixed(1)} MB`
  const rows = [['backup', path], ['size', size], ...contentRows(manifest)]
  if (deleted.length > 0) rows.push(['deleted', counted(deleted.length, 'older backup')])
  return writeTable(rows)
}

function writeContents(manifest: BackupManifest): string {
  return writeTable(contentRows(manifest))
}

function contentRows({ atMs, version, schema, tables, audit }: BackupManifest): string[][] {
  const rows = (name: string): number => tables[name]?.rows ?? 0
  return [
    ['taken', `${writeTime(atMs)} by svc-router ${version}, schema ${schema}`],
    [
      'contains',
      [
        counted(rows('accounts'), 'account'),
        counted(rows('keys'), 'key'),
        counted(rows('requests'), 'request'),
        `audit log to entry ${audit.sequence}`,
      ].join(', '),
    ],
  ]
}

function plainContents({ manifest, audit, uncounted }: CheckedBackup): object {
  const { atMs, version, engine, schema, tables, secrets } = manifest
  return { taken_at: new Date(atMs).toISOString(), version, engine, schema, tables, secrets, audit, uncounted }
}

function problemsOf({ audit, uncounted }: CheckedBackup, invocation: Invocation): readonly string[] {
  const problems: string[] = []
  if (audit.state === 'broken')
    problems.push(
      `Warning: its audit log is broken at entry ${audit.at.sequence}: ${breakReasons[audit.at.why]}. See: ${invocation.command('audit verify')}`,
    )
  if (uncounted > 0)
    problems.push(
      `Warning: the monthly usage of ${counted(uncounted, 'account')} is lower than the sum of their charged requests.`,
    )
  return problems
}

function tellChanges(
  { entries, applied, lost, accountsToCheck }: Reapplied,
  { atMs }: BackupManifest,
  since: string | undefined,
): readonly string[] {
  const quota = `Requests and quota counts after ${writeTime(atMs)} are lost.`
  if (since === undefined)
    return [`All changes after ${writeTime(atMs)} are lost. Keys that were revoked after it work again.`, quota]
  const lines = [
    `Reapplied ${counted(applied, 'change')} from ${counted(entries, 'later audit entry').replace('entrys', 'entries')}.`,
    quota,
  ]
  const names = Object.entries(lost).map(([type, count]) => `${count} ${type}`)
  if (names.length > 0)
    lines.push(`Not applied, because the log does not contain the data that they need: ${names.join(', ')}.`)
  if (accountsToCheck.length > 0)
    lines.push(
      `Check these accounts, because they restricted a key or removed a sign-in method: ${accountsToCheck.join(', ')}.`,
    )
  return lines
}

import { closeSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { plainPlan, type ApplyPlan } from '../../accounts/declared/apply.ts'
import type { Change } from '../../accounts/declared/change.ts'
import type { Exported } from '../../accounts/declared/export.ts'
import { maxFileBytes, readDeclaration, writeDeclaration, type ReadDeclaration } from '../../config/declaration.ts'
import { counted } from '../../runtime/counted.ts'
import { quoteForShell } from '../../runtime/quote-for-shell.ts'
import { adminApiOf, remoteOptions } from '../admin-client.ts'
import { writeChanges, writePath } from '../change-text.ts'
import type { Option } from '../command-line.ts'
import type { Command, Invocation, Result } from '../command.ts'
import {
  exportLocal,
  exportRemote,
  localTarget,
  remoteTarget,
  type DeclaredTarget,
  type NewKey,
} from '../declared-target.ts'
import { CommandError, exitCodes } from '../failures.ts'

const fileOption: Option = {
  name: 'file',
  short: 'f',
  value: 'FILE',
  required: true,
  summary: 'The file, in YAML or JSON. Use "-" to read standard input.',
}
const pruneOption: Option = {
  name: 'prune',
  summary:
    'Also delete objects that an earlier file declared and this file omits, except budgets. Sections that the file does not have are left alone.',
}

/** Makes the service match a file (contract 38.6). */
export const apply: Command = {
  name: 'apply',
  summary:
    'Make accounts, keys, budgets, plans, backends, and profiles match a file. Applying it again changes nothing.',
  arguments: [],
  options: [
    fileOption,
    pruneOption,
    { name: 'dry-run', summary: `Only show what would change. Exits with ${exitCodes.different} if anything would.` },
    { name: 'yes', summary: 'Required if anything is deleted. Has no effect with --dry-run.' },
    {
      name: 'secrets-out',
      value: 'FILE',
      summary: 'Write new keys to this file, which must not exist yet, instead of printing them.',
    },
    ...remoteOptions,
  ],
  example: 'apply -f service.yaml',
  async run(invocation) {
    const { line } = invocation
    if (line.flag('dry-run')) return showDifferences(invocation)
    const read = await readFile(invocation)
    const prune = line.flag('prune')
    return withTarget(invocation, read, async (target) => {
      const planned = await target.plan(prune)
      const deletions = planned.changes.filter(({ action }) => action === 'delete')
      if (deletions.length > 0 && !line.flag('yes')) throw unconfirmed(invocation, deletions)
      const out = openSecrets(line.option('secrets-out'))
      try {
        const applied = await target.apply(prune, planned.id)
        out?.write(applied.created)
        const result = writeApplied(invocation, applied, out === undefined)
        return { ...result, talk: [...unsetCredentials(invocation, read), ...result.talk] }
      } finally {
        out?.close()
      }
    })
  },
}

/** Shows what `apply` would change. */
export const diff: Command = {
  name: 'diff',
  summary: `Show how the service differs from a file. Exits with ${exitCodes.different} if apply would change anything.`,
  arguments: [],
  options: [fileOption, { ...pruneOption, summary: 'Also show what apply --prune would delete.' }, ...remoteOptions],
  example: 'diff -f service.yaml',
  run: showDifferences,
}

/** Writes the state as a file for `apply`. */
export const exportFile: Command = {
  name: 'export',
  summary:
    'Print a file for apply with the accounts, keys, plans, backends, profiles, and the budgets that operators set, without secrets.',
  arguments: [],
  options: [
    {
      name: 'managed',
      summary:
        'Print only objects that an earlier file declared, and all budgets that operators set for the declared accounts.',
    },
    ...remoteOptions,
  ],
  example: 'export > service.yaml',
  async run(invocation) {
    const managed = invocation.line.flag('managed')
    const ask = adminApiOf(invocation, 'export')
    if (ask !== undefined) return showExport(invocation, await exportRemote(ask, managed))
    return invocation.withStore(async (workspace) => showExport(invocation, await exportLocal(workspace, managed)), {
      settings: 'as stored',
    })
  },
}

function showExport(invocation: Invocation, { file, omitted }: Exported): Result {
  return {
    text: writeDeclaration(file).trimEnd(),
    json: file,
    talk: [
      ...omitted.map((path) => `Omitted ${writePath(path)}: several active keys have this name.`),
      `Next: ${invocation.command('diff -f FILE')}`,
    ],
  }
}

async function showDifferences(invocation: Invocation): Promise<Result> {
  const read = await readFile(invocation)
  return withTarget(invocation, read, async (target) => {
    const planned = await target.plan(invocation.line.flag('prune'))
    const count = planned.changes.length
    return {
      text: writeChanges(planned),
      json: plainPlan(planned),
      talk: [
        ...unsetCredentials(invocation, read),
        count === 0
          ? 'No changes.'
          : `${counted(count, 'change')}. Next: ${invocation.command(applyCommand(invocation))}`,
      ],
      exitCode: count === 0 ? exitCodes.ok : exitCodes.different,
    }
  })
}

function writeApplied(
  invocation: Invocation,
  applied: ApplyPlan & { readonly created: readonly NewKey[] },
  showsSecrets: boolean,
): Result {
  const { changes, undeclared, created } = applied
  const shown = showsSecrets ? created : []
  const lines = shown.map(
    ({ account, name, key }) => `${writePath(['accounts', account, 'keys', name])}: ${key.reveal()}`,
  )
  return {
    text: [writeChanges({ changes, undeclared }), ...(lines.length > 0 ? ['', ...lines] : [])].join('\n').trim(),
    json: {
      ...plainPlan(applied),
      applied: changes.length > 0,
      keys: created.map(({ key, ...rest }) => (showsSecrets ? { ...rest, key: key.reveal() } : rest)),
    },
    talk:
      changes.length === 0
        ? ['No changes.']
        : [
            ...(lines.length > 0 ? ['New keys are shown only once, so save them now.'] : []),
            `Made ${counted(changes.length, 'change')}. Running servers apply them within a second.`,
            `Next: ${invocation.command('audit list')}`,
          ],
  }
}

/** A warning for each declared backend whose credential is not set here: nodes would reject it (contract 38.9). */
function unsetCredentials({ line, terminal }: Invocation, { declaration }: ReadDeclaration): readonly string[] {
  if (line.option('url') !== undefined) return []
  return Object.entries(declaration.settings.backends ?? {}).flatMap(([id, { credential_env: variable }]) =>
    typeof variable !== 'string' || (terminal.env[variable] ?? '').trim() !== ''
      ? []
      : [`Warning: ${variable}, the credential of backend ${id}, is not set here. It must be set on every node.`],
  )
}

function unconfirmed(invocation: Invocation, deletions: readonly Change[]): CommandError {
  const names = deletions.slice(0, 20).map(({ path }) => writePath(path))
  const more = deletions.length > names.length ? ` and ${deletions.length - names.length} more` : ''
  return new CommandError(
    exitCodes.usage,
    `this would delete ${names.join(', ')}${more}, which cannot be undone. Nothing was changed`,
    `to confirm: ${invocation.command(`${applyCommand(invocation)} --yes`)}`,
  )
}

function applyCommand({ line }: Invocation): string {
  const kept = ['url', 'token-variable', 'secrets-out'].flatMap((name) => {
    const value = line.option(name)
    return value === undefined ? [] : [`--${name} ${quoteForShell(value)}`]
  })
  const prune = line.flag('prune') ? ['--prune'] : []
  return ['apply -f', quoteForShell(line.option('file') ?? ''), ...prune, ...kept].join(' ')
}

async function readFile({ line, terminal }: Invocation): Promise<ReadDeclaration> {
  const path = line.option('file') ?? ''
  if (path === '-') return readDeclaration('standard input', await terminal.readStdin(maxFileBytes))
  return readDeclaration(path, readText(path))
}

function readText(path: string): string {
  try {
    // A larger file is refused by its size, and not read.
    return statSync(path).size > maxFileBytes ? ' '.repeat(maxFileBytes + 1) : readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new CommandError(
      exitCodes.usage,
      code === 'ENOENT' ? `there is no file ${path}` : `${path} cannot be read (${code})`,
      'specify another one: -f FILE',
    )
  }
}

/** Runs work with the service of the data folder, or the one at `--url`. */
function withTarget(
  invocation: Invocation,
  read: ReadDeclaration,
  work: (target: DeclaredTarget) => Promise<Result>,
): Promise<Result> {
  const ask = adminApiOf(invocation, read.from.name)
  if (ask !== undefined) return work(remoteTarget(ask, read))
  const again = invocation.command(applyCommand(invocation))
  return invocation.withStore((workspace) => work(localTarget(workspace, read, again)), { settings: 'as stored' })
}

interface SecretsFile {
  write(created: readonly NewKey[]): void
  close(): void
}

/** Creates the file for new keys before anything changes, so that no key is lost. Without new keys, there is no file. */
function openSecrets(path: string | undefined): SecretsFile | undefined {
  if (path === undefined) return undefined
  const file = createPrivate(path)
  let isEmpty = true
  return {
    write(created) {
      const lines = created.map(({ key, ...rest }) => JSON.stringify({ ...rest, key: key.reveal() }))
      if (lines.length === 0) return
      isEmpty = false
      writeFileSync(file, `${lines.join('\n')}\n`)
    },
    close() {
      closeSync(file)
      if (isEmpty) rmSync(path)
    },
  }
}

function createPrivate(path: string): number {
  try {
    return openSync(path, 'wx', 0o600)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new CommandError(
      exitCodes.usage,
      code === 'EEXIST' ? `the file ${path} already exists` : `${path} cannot be created (${code})`,
      'choose another file: --secrets-out FILE',
    )
  }
}

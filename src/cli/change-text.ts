import type { ApplyPlan } from '../accounts/declared/apply.ts'
import type { Change, Undeclared } from '../accounts/declared/change.ts'
import type { Json } from '../domain/json.ts'
import { terminalLine } from '../runtime/safe-text.ts'

/** How many objects that the file does not have are listed; --json lists all. */
const maxListed = 50
const maxValueCharacters = 200

const signs: Readonly<Record<Change['action'], string>> = { create: '+', update: '~', delete: '-' }

/** A list of changes, one line per object and per field. */
export function writeChanges({ changes, undeclared }: Pick<ApplyPlan, 'changes' | 'undeclared'>): string {
  const lines = changes.flatMap(({ action, kind, path, fields, source }) => [
    `${signs[action]} ${writePath(path)}${source === undefined ? '' : ' (so far only in the configuration)'}`,
    ...(kind === 'profile' && action === 'create' && source === undefined && !fields.some(isBackends)
      ? ['    no backends']
      : []),
    ...fields.map(({ field, before, after }) => `    ${terminalLine(field)}: ${writeStep(action, before, after)}`),
  ])
  if (undeclared.length > 0)
    lines.push(
      ...(lines.length === 0 ? [] : ['']),
      'Not in the file, and not changed:',
      ...undeclared.slice(0, maxListed).map(writeUndeclared),
      ...(undeclared.length > maxListed ? [`  and ${undeclared.length - maxListed} more`] : []),
    )
  return lines.join('\n')
}

function isBackends({ field }: Change['fields'][number]): boolean {
  return field === 'backends'
}

function writeUndeclared({ path, isManaged, note }: Undeclared): string {
  const value = note === undefined ? '' : `: ${note}`
  return `  ${writePath(path)}${value}${isManaged ? ' (declared by an earlier file; --prune deletes it)' : ''}`
}

function writeStep(action: Change['action'], before: Json | undefined, after: Json | undefined): string {
  if (action === 'create') return writeValue(after)
  if (action === 'delete') return writeValue(before)
  return `${writeValue(before)} → ${writeValue(after)}`
}

function writeValue(value: Json | undefined): string {
  if (value === undefined) return 'not set'
  if (Array.isArray(value) && value.length === 0) return 'none'
  const text = Array.isArray(value) ? value.join(', ') : typeof value === 'string' ? value : JSON.stringify(value)
  return terminalLine(text.length > maxValueCharacters ? `${text.slice(0, maxValueCharacters)}…` : text)
}

/** `accounts.acme.keys.ci`; names with other characters are quoted. */
export function writePath(path: readonly string[]): string {
  return path.map((step) => (/^[\w/-]+$/.test(step) ? step : terminalLine(JSON.stringify(step)))).join('.')
}

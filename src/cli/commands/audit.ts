import { createReadStream, readFileSync, statSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { findAccount } from '../../accounts/accounts.ts'
import { verifyExport } from '../../accounts/audit/audit-export.ts'
import { authentic, type AuditVerdict, verifyAudit, readAll, AuditBroken } from '../../accounts/audit/audit.ts'
import { signRemembered } from '../../accounts/audit/checkpoints.ts'
import { sealingKeys } from '../../config/sealing-keys.ts'
import { breakReasons, writeLink } from '../../domain/audit-chain.ts'
import type { Actor, AuditEvent } from '../../domain/audit.ts'
import {
  type Checkpoint,
  type CheckpointKeys,
  checkpointKeys,
  readCheckpoint,
  writeCheckpoint,
} from '../../domain/checkpoint.ts'
import { readWhole } from '../command-line.ts'
import { accountOption, type Command, type Invocation } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { whole } from '../value-shapes.ts'

const defaultLimit = 20
const maxLimit = 1000
const longestSequence = 999_999_999

export const auditList: Command = {
  name: 'audit list',
  summary: 'List who changed what, newest first.',
  arguments: [],
  options: [
    {
      name: 'limit',
      value: 'COUNT',
      shape: whole(1, maxLimit, defaultLimit),
      summary: `Maximum number of entries, at most ${maxLimit}. Default ${defaultLimit}.`,
    },
    {
      name: 'before',
      value: 'NUMBER',
      shape: whole(1, longestSequence, 100),
      summary: 'Only entries before this one, to get the next page.',
    },
    { ...accountOption, summary: 'Only entries about this account. Default: all.' },
  ],
  example: 'audit list --limit 50',
  run(invocation) {
    const { line } = invocation
    const limit = readWhole(line, 'limit', 1, maxLimit) ?? defaultLimit
    const beforeSequence = readWhole(line, 'before', 1, longestSequence)
    return invocation.withStore(async ({ accountsDeps, audit }) => {
      const named = line.option('account')
      const accountId = named === undefined ? undefined : (await findAccount(accountsDeps, named)).id
      const entries = await audit.listAudit({
        limit,
        ...(accountId !== undefined && { accountId }),
        ...(beforeSequence !== undefined && { beforeSequence }),
      })
      const rows = entries.map(({ sequence, atMs, actor, event }) => [
        String(sequence),
        writeTime(atMs),
        writeActor(actor),
        event.type,
        writeFields(event),
      ])
      const last = entries.at(-1)
      return {
        text: entries.length === 0 ? '' : writeTable([['NUMBER', 'TIME', 'BY', 'EVENT', 'DETAILS'], ...rows]),
        json: entries,
        talk: [
          last === undefined
            ? 'There are no entries.'
            : `Next: ${invocation.command(last.sequence > 1 ? `audit list --before ${last.sequence}` : 'audit verify')}`,
        ],
      }
    })
  },
}

function writeActor(actor: Actor): string {
  if (actor.kind === 'operator') return actor.operatorId
  if (actor.kind === 'token') return actor.tokenId
  return actor.kind === 'session' ? `session ${actor.sessionId}` : actor.kind
}

function writeFields(event: AuditEvent): string {
  return Object.entries(event)
    .filter(([name]) => name !== 'type')
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ')
}

const maxCheckpointBytes = 4096

/** The three results have the exit codes of contract 25.6. */
export const auditVerify: Command = {
  name: 'audit verify',
  summary: 'Check that the audit log was not changed or truncated. The service does not have to be running.',
  arguments: [],
  options: [
    { name: 'file', value: 'FILE', summary: 'Verify an exported log instead of the database.' },
    { name: 'checkpoint', value: 'FILE', summary: 'Also verify against a checkpoint that was stored elsewhere.' },
    {
      name: 'trust',
      summary:
        'With --file and --checkpoint: accept the checkpoint without verifying its signature. Use it only if nobody could have changed the checkpoint.',
    },
  ],
  example: 'audit verify --file audit.jsonl --checkpoint checkpoint.json',
  async run(invocation) {
    const kept = readKept(invocation)
    const verdict = await verify(invocation, kept)
    return { ...tell(verdict, invocation), json: verdict }
  },
}

async function verify(invocation: Invocation, kept: readonly Checkpoint[]): Promise<AuditVerdict> {
  const { line } = invocation
  const file = line.option('file')
  const trusts = line.flag('trust')
  if (file === undefined) {
    if (trusts)
      throw new CommandError(exitCodes.usage, '--trust needs an exported log', 'add --file FILE, or omit --trust')
    return invocation.withStore(({ config, audit }) =>
      verifyAudit(audit, { keys: keysOf(config), storedElsewhere: kept }),
    )
  }
  const proven = trusts ? kept : authentic(kept, keysOf(invocation.load('pretend')))
  if ('why' in proven) return { state: 'broken', at: proven }
  readable(file)
  const input = createReadStream(file, 'utf8')
  try {
    return await verifyExport(createInterface({ input, crlfDelay: Infinity }), proven)
  } finally {
    input.destroy()
  }
}

function keysOf({ secrets }: ReturnType<Invocation['load']>): CheckpointKeys {
  return checkpointKeys(sealingKeys(secrets))
}

function readKept({ line }: Invocation): readonly Checkpoint[] {
  const file = line.option('checkpoint')
  if (file === undefined) return []
  readable(file)
  const checkpoint = statSync(file).size > maxCheckpointBytes ? undefined : readCheckpoint(readFileSync(file, 'utf8'))
  if (checkpoint !== undefined) return [checkpoint]
  throw new CommandError(
    exitCodes.usage,
    'the --checkpoint file does not contain a checkpoint',
    'use a file with the output of "audit checkpoint"',
  )
}

function readable(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() === true) return
  throw new CommandError(exitCodes.usage, `there is no file ${file}`, 'check the path')
}

function tell(
  verdict: AuditVerdict,
  invocation: Invocation,
): { text: string; talk: readonly string[]; exitCode: number } {
  if (verdict.state === 'broken') {
    const { sequence, why } = verdict.at
    return {
      text: `broken at entry ${sequence}: ${breakReasons[why]}`,
      talk: ['Earlier entries are intact. Do not change this database; compare it with a backup or an export.'],
      exitCode: exitCodes.failure,
    }
  }
  if (verdict.state === 'unproven')
    return {
      text: `unproven: the chain of ${writeEntries(verdict.entries)} is unbroken, but nothing proves that later entries were not removed`,
      talk: [`Provide a checkpoint: ${invocation.command('audit verify')} --checkpoint FILE`],
      exitCode: exitCodes.unproven,
    }
  const { entries, provenTo } = verdict
  const unsigned = entries - provenTo
  return {
    text: `intact: ${writeEntries(entries)}, proven through entry ${provenTo}`,
    talk:
      unsigned === 0
        ? []
        : [
            `${unsigned} newer ${unsigned === 1 ? 'entry is' : 'entries are'} not signed yet: ${invocation.command('audit checkpoint')}`,
          ],
    exitCode: exitCodes.ok,
  }
}

export const auditExport: Command = {
  name: 'audit export',
  summary: 'Print the whole audit log as JSON lines, to store and verify elsewhere.',
  arguments: [],
  options: [],
  example: 'audit export > audit.jsonl',
  run: (invocation) =>
    invocation.withStore(async ({ audit }) => {
      let count = 0
      // Line by line, because a log may be larger than memory.
      for await (const link of readAll(audit)) {
        invocation.terminal.jsonLine(writeLink(link))
        count += 1
      }
      return {
        text: '',
        json: undefined,
        talk: [
          `Exported ${writeEntries(count)}. Next, sign the last one: ${invocation.command('audit checkpoint')} > checkpoint.json`,
        ],
      }
    }),
}

export const auditCheckpoint: Command = {
  name: 'audit checkpoint',
  summary: 'Sign the current audit log. Store the output on another machine: it reveals any later truncation.',
  arguments: [],
  options: [],
  example: 'audit checkpoint > checkpoint.json',
  run: (invocation) =>
    invocation.withStore(async ({ config, audit, checkpoints: memory }) => {
      const keys = checkpointKeys(sealingKeys(config.secrets))
      const checkpoint = await signRemembered({ store: audit, keys, memory }, invocation.ports.clock.nowMs()).catch(
        (error: unknown) => {
          if (!(error instanceof AuditBroken)) throw error
          throw new CommandError(
            exitCodes.failure,
            `the audit log is broken at entry ${error.at.sequence}, so it was not signed`,
            `see why: ${invocation.command('audit verify')}`,
          )
        },
      )
      if (checkpoint === undefined) return { text: '', json: null, talk: ['The audit log is empty.'] }
      return {
        text: writeCheckpoint(checkpoint),
        json: JSON.parse(writeCheckpoint(checkpoint)) as unknown,
        talk: [
          `Signed all entries through ${checkpoint.sequence}. To verify the log later: ${invocation.command('audit verify')} --checkpoint checkpoint.json`,
        ],
      }
    }),
}

function writeEntries(count: number): string {
  return `${count} ${count === 1 ? 'entry' : 'entries'}`
}

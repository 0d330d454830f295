import { createReadStream, readFileSync, statSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { authentic, type AuditVerdict, verifyAudit } from '../../accounts/audit/audit.ts'
import { verifyExport } from '../../accounts/audit/audit-export.ts'
import { sealingKeys } from '../../config/sealing-keys.ts'
import { breakReasons } from '../../domain/audit-chain.ts'
import { type Checkpoint, type CheckpointKeys, checkpointKeys, readCheckpoint } from '../../domain/checkpoint.ts'
import type { Command, Invocation } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'

const maxCheckpointBytes = 4096

export const auditVerify: Command = {
  name: 'audit verify',
  summary: 'Check that the audit log was not changed or truncated. Does not need a running service.',
  arguments: [],
  options: [
    { name: 'file', value: 'FILE', summary: 'Verify an exported log instead of the database.' },
    { name: 'checkpoint', value: 'FILE', summary: 'A checkpoint that was stored elsewhere.' },
    {
      name: 'trust',
      summary: 'Trust that checkpoint without the sealing key, if it was stored where nobody could change it.',
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
      verifyAudit(audit, { keys: keysOf(config), keptElsewhere: kept }),
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
    'use the output of audit checkpoint',
  )
}

function readable(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() === true) return
  throw new CommandError(exitCodes.usage, 'the file to verify does not exist', 'name the exported file')
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
      text: `unproven: the chain of ${verdict.entries} entries is unbroken, but nothing proves that later entries were not removed`,
      talk: [`Provide a checkpoint: ${invocation.command('audit verify')} --checkpoint FILE`],
      exitCode: exitCodes.unproven,
    }
  const { entries, provenTo } = verdict
  const behind = entries - provenTo
  return {
    text: `intact: ${entries} ${entries === 1 ? 'entry' : 'entries'}, proven to entry ${provenTo}`,
    talk: behind === 0 ? [] : [`${behind} newer entries are not signed yet: ${invocation.command('audit checkpoint')}`],
    exitCode: exitCodes.ok,
  }
}

import { readVersion } from '../../runtime/version.ts'
import type { Option } from '../command-line.ts'
import type { Command, Invocation } from '../command.ts'
import { exitCodes } from '../failures.ts'
import {
  callerOptions,
  findKey,
  findService,
  keyCommand,
  readKeyVariable,
  readModel,
  type ServiceAddress,
} from '../service-address.ts'
import type { Answer } from './doctor/ask.ts'
import { diagnose } from './doctor/diagnose.ts'
import type { Finding, Wording } from './doctor/finding.ts'
import { sendTestRequest, inspectService, type Observations, type Subject } from './doctor/inspect-service.ts'
import { readNumberHeader, shown, standingOf } from './doctor/read-answer.ts'

const doctorOptions: readonly Option[] = [
  ...callerOptions,
  {
    name: 'user-agent',
    value: 'TEXT',
    summary: "Your client's User-Agent, to check whether it is accepted.",
  },
  {
    name: 'ask',
    summary:
      'If nothing blocks requests, also send and time one small real request, which counts toward the quota. It can take a minute.',
  },
]

export const doctor: Command = {
  name: 'doctor',
  summary: 'Find out within 3 seconds why requests fail and how to fix it. Sends no paid request unless you add --ask.',
  arguments: [],
  options: doctorOptions,
  example: 'doctor --url https://router.example.com/v1 --key-variable MY_KEY',
  async run(invocation) {
    const address = findService(invocation)
    const { subject, reporter } = prepare(invocation, address)
    const seen = await inspectService(subject)
    const isAsking = invocation.line.flag('ask') && !diagnose(subject, seen, reporter).some(({ blocks }) => blocks)
    const asked = isAsking ? await sendTestRequest(subject) : undefined
    // Check the providers again, because one that failed before may have just answered.
    const sight = asked === undefined ? seen : { ...(await inspectService(subject)), asked }
    const findings = diagnose(subject, sight, reporter)
    const summary = findings.length === 0 ? writeSummary(subject, sight) : undefined
    return {
      text: summary ?? findings.map(writeFinding).join('\n'),
      json: {
        ok: findings.length === 0,
        base_url: subject.baseUrl,
        key_variable: subject.keyVariable,
        model: subject.model,
        findings: findings.map(({ code, what, fix, blocks }) => ({ code, what, fix, blocks })),
        ...measured(sight),
      },
      talk: [],
      exitCode: findings.length === 0 ? exitCodes.ok : exitCodes.failure,
    }
  },
}

/** Collects what the diagnosis needs from the command line and the environment. @throws CommandError */
export function prepare(
  invocation: Invocation,
  address: ServiceAddress,
): { readonly subject: Subject; readonly reporter: Wording } {
  const keyVariable = readKeyVariable(invocation)
  const named = invocation.line.option('user-agent')
  return {
    subject: {
      baseUrl: address.baseUrl,
      key: findKey(invocation, keyVariable, address),
      keyVariable,
      model: readModel(invocation),
      userAgent: shown(named ?? `svc-router-doctor/${readVersion()}`),
    },
    reporter: {
      command: (text) => invocation.command(text),
      keyCommand: keyCommand(invocation, address, keyVariable),
      isOwn: address.ownDataDir !== undefined,
      isNamedUserAgent: named !== undefined,
    },
  }
}

function writeFinding({ what, fix }: Finding): string {
  return `✗ ${what}\n  = fix: ${fix}`
}

/** The one-line summary of a healthy service. */
function writeSummary({ baseUrl, model }: Subject, sight: Observations): string {
  const models = sight.models as Answer
  const standing = standingOf(models, model)
  const left = (name: string, when: string): string[] => {
    const [remaining, limit] = [
      readNumberHeader(models, `x-${name}-remaining`),
      readNumberHeader(models, `x-${name}-limit`),
    ]
    // A proxy may have removed these headers; everything works without them.
    return remaining === undefined || limit === undefined ? [] : [`${remaining} of ${limit} requests left ${when}`]
  }
  const parts = [...left('ratelimit', 'this minute'), ...left('quota', 'this month')]
  if (standing !== undefined) {
    const kind = `${standing.simulated === standing.connected ? 'simulated ' : ''}backend${standing.connected === 1 ? '' : 's'}`
    const asked = sight.asked === undefined ? ', not called now (--ask sends one request)' : ''
    parts.push(`${standing.connected} ${kind} of ${model} without a recent failure${asked}`)
  }
  const { asked } = sight
  if (asked?.kind === 'answer')
    parts.push(
      `${shown(String(asked.headers['x-svc-router-upstream'] ?? 'a provider'))} started to answer after ${ms(asked.pieceMs[0])}`,
    )
  return `✓ no problems found: ${[`${baseUrl} answered in ${ms(models.totalMs)}`, ...parts].join(', ')}`
}

function measured({ models, asked }: Observations): object {
  return {
    ...(models.kind === 'answer' ? { answered_ms: Math.round(models.totalMs) } : {}),
    ...(asked?.kind === 'answer' && asked.pieceMs[0] !== undefined
      ? { first_byte_ms: Math.round(asked.pieceMs[0]), answer_ms: Math.round(asked.totalMs) }
      : {}),
  }
}

function ms(value = 0): string {
  return `${Math.round(value)} ms`
}

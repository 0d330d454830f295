import { requestFormatIds, type ClientFormatId } from '../domain/format-id.ts'
import { suggest } from '../config/check-shape.ts'
import { describeDoubt, describeLeftOut } from '../domain/route-words.ts'
import { maxQuestionTokens, type RoutePlan, type RouteQuestion } from '../domain/route-plan.ts'
import { accountOption, type Command, type Invocation } from './command.ts'
import { readWhole } from './command-line.ts'
import { CommandError, exitCodes } from './failures.ts'
import { oneOf, whole } from './value-shapes.ts'
import { writeTable } from './table.ts'

const formats = requestFormatIds
const defaultTokens = 1_000

export const profilesDryRun: Command = {
  name: 'profiles dry-run',
  summary: 'Say where a request would go, without sending one: who would be asked in which order, and why others not.',
  arguments: ['PROFILE'],
  needsCredentials: true,
  options: [
    accountOption,
    { name: 'plan', value: 'PLAN', summary: 'Instead of an account: any that is on this plan and has no providers.' },
    {
      name: 'format',
      value: 'FORMAT',
      shape: oneOf(formats),
      summary: `How the client speaks: ${formats.join(', ')}. Default ${formats[0]}.`,
    },
    { name: 'stream', summary: 'The answer is to be streamed.' },
    { name: 'images', summary: 'The request holds a picture.' },
    { name: 'tools', summary: 'The request has tools.' },
    {
      name: 'tokens',
      value: 'COUNT',
      shape: whole(1, maxQuestionTokens, defaultTokens),
      summary: `About so many tokens of text. Default ${defaultTokens}.`,
    },
  ],
  example: 'profiles dry-run svc-router/frontier --tokens 200000',
  run(invocation) {
    const question = readQuestion(invocation)
    const planId = invocation.line.option('plan')
    return invocation.withStore(async ({ config, account }) => {
      const named = planId === undefined ? await account() : { id: '', planId }
      const plan = config.plans.find(({ id }) => id === named.planId)
      if (plan === undefined)
        throw new CommandError(exitCodes.failure, 'there is no such plan', invocation.command('check'))
      const route = await invocation.ports.planRoute(config, { accountId: named.id, plan }, question)
      if (route.refusal?.code === 'model_not_found')
        throw new CommandError(
          exitCodes.failure,
          'there is no profile of that name',
          suggest(
            question.profile,
            config.profiles.map(({ id }) => id),
          ),
        )
      return {
        text: writeRoute(route, invocation.ports.clock.nowMs()),
        json: { question, ...route },
        talk: ['By what is configured and kept. What the running service leaves alone by itself is in its memory.'],
      }
    })
  },
}

function readQuestion(invocation: Invocation): RouteQuestion {
  const { line } = invocation
  const profile = invocation.argument(0, 'the profile', 'profiles dry-run PROFILE')
  const given = line.option('format') ?? formats[0]
  const format = formats.find((known): known is ClientFormatId => known === given)
  if (format === undefined)
    throw new CommandError(exitCodes.usage, 'there is no such format', `--format ${formats.join('|')}`)
  return {
    profile,
    format,
    stream: line.flag('stream'),
    images: line.flag('images'),
    tools: line.flag('tools'),
    tokens: readWhole(line, 'tokens', 1, maxQuestionTokens) ?? defaultTokens,
  }
}

function writeRoute({ refusal, panel, asked, leftOut }: RoutePlan, nowMs: number): string {
  const lines: string[] = []
  if (refusal !== undefined) lines.push(`Refused before anybody is asked: ${refusal.code}.`)
  if (panel !== undefined)
    lines.push(`Deliberated by ${panel.asked.join(', ')}; written by ${panel.writers[0] ?? 'nobody'}.`)
  const rows = [
    ...asked.map(({ backend, lane, doubts }, index) => [
      String(index + 1),
      backend,
      [lane, ...doubts.map(describeDoubt)].join('; '),
    ]),
    ...leftOut.map((left) => ['-', left.backend, describeLeftOut(left, nowMs)]),
  ]
  if (rows.length > 0) lines.push(writeTable([['ASKED', 'BACKEND', 'HOW, OR WHY NOT'], ...rows]))
  else if (refusal === undefined) lines.push('Nobody would be asked.')
  return lines.join('\n')
}

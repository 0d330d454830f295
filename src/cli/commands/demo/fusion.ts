import type { CallRecord, FusionRecord } from '../../../domain/fusion-record.ts'
import { objectOf, type Json, type JsonObject } from '../../../domain/json.ts'
import { fusionId } from '../../../domain/profiles.ts'
import { readCandidates } from '../../../eval/quoted-candidates.ts'
import type { Demo } from './demo.ts'
import { chatRequest, type DemoAnswer, type Stage } from './stage.ts'

const lost = 'sim-beta'
const question = 'Is it safe to drop an index that no query uses?'
const agreed = 'Yes: an unused index only costs space and slows down writes.'
/** What each simulated model adds to what all say. */
const texts: Readonly<Record<string, string>> = {
  'sim-alpha': `${agreed} Check the replicas first, because each server counts its own queries.`,
  'sim-beta': `${agreed} Drop it concurrently, so that writes continue.`,
  'sim-gamma': `${agreed} Store its definition, so that you can create it again.`,
}
const members = Object.keys(texts)
const tool = { type: 'svc-router:fusion', parameters: { include: ['responses', 'analysis', 'scores'] } }

/** The demo of contract 15.1, 15.4, and 6.8. */
export const fusion: Demo = {
  name: 'fusion',
  summary: 'Three models answer, one compares the answers, and you get one reply. Then a model fails.',
  promise: 'A fused answer takes one quota unit, and it is complete even if a model fails.',
  service: { requestsPerMinute: 60, requestsPerMonth: 100, providers: members, say },
  headers: ['X-Svc-Router-Upstream', 'X-Quota-Used'],
  async run(stage) {
    stage.note(
      'The models give scripted answers, and the simulated judge compares sentences without understanding them.',
    )
    stage.title(`${members.length} models answer, and one of them compares the answers`)
    const whole = await askAll(stage)
    stage.check(
      `${whole.trail?.answered} of ${members.length} models answered`,
      whole.trail?.answered === members.length,
    )
    checkReply(stage, whole.answer)

    stage.title(`${lost} answers 503`)
    await stage.service.fail(lost, 'answers 503')
    const degraded = await askAll(stage)
    const steps = degraded.trail?.degraded ?? []
    stage.check(`the answer reports the failure: ${steps.join(', ')}`, steps.includes('member_lost'))
    checkReply(stage, degraded.answer)
  },
}

/** Judges answer as simulated judges do; writers join every sentence that they are shown. */
function say(member: string, request: string): string | undefined {
  const candidates = readCandidates(request)
  if (candidates.length === 0) return texts[member]
  if (request.includes('"injection_flags"')) return undefined
  return [...new Set(candidates.flatMap(({ text }) => text.split(/(?<=\.) /)))].join(' ')
}

async function askAll(stage: Stage): Promise<{ answer: DemoAnswer; trail: FusionRecord | undefined }> {
  const answer = await stage.ask(chatRequest(fusionId, question, { tools: [tool] }))
  const report = memberOf(memberOf(answer.body, 'svc_router'), 'fusion')
  for (const line of writeFindings(report)) stage.note(line)
  const trail = answer.record?.fusions?.[0]
  if (trail === undefined) return { answer, trail }
  for (const call of trail.calls) stage.note(writeCall(call))
  const { panelMs, judgeMs, totalMs, verdict = 'none', mode = 'none', degraded } = trail
  stage.note(`times:     panel ${panelMs} ms, judge ${judgeMs} ms, total ${totalMs} ms`)
  stage.note(`decision:  ${verdict}; reply: ${mode}; degraded: ${degraded.join(', ') || 'no'}`)
  return { answer, trail }
}

/** The answers of the panel, by letter, and what the judge found in all of them. */
function writeFindings(report: JsonObject): string[] {
  const scores = memberOf(report, 'scores')
  const answers = listOf(report['responses']).map((entry) => {
    const { model, content } = objectOf(entry)
    const { total } = memberOf(scores, textOf(model))
    return `model ${textOf(model)}:   ${textOf(content)} (score ${textOf(total)})`
  })
  const shared = listOf(memberOf(report, 'analysis')['consensus']).map((claim) => `all agree: ${textOf(claim)}`)
  return [...answers, ...shared]
}

function checkReply(stage: Stage, { status, text, record }: DemoAnswer): void {
  const calls = record?.fusions?.[0]?.calls.length
  stage.check('the reply is complete', status === 200 && text.includes(agreed))
  stage.check(`${calls} model calls cost ${record?.charged} quota unit`, record?.charged === 1)
}

function memberOf(object: JsonObject, name: string): JsonObject {
  return objectOf(object[name])
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : []
}

function writeCall({ role, member, status, ms, usage }: CallRecord): string {
  const tokens = usage === undefined ? '' : `, ${usage.inputTokens} tokens in, ${usage.outputTokens} out`
  return `${`${role}:`.padEnd(11)}${member} ${status} after ${Math.round(ms)} ms${tokens}`
}

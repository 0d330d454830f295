import type { AnswerEvent } from '../../domain/conversation.ts'
import type { CallRole, FusionRecord } from '../../domain/fusion-record.ts'
import { needsMarks } from '../cache/cache-lifetime.ts'
import type { Backend } from '../ports.ts'
import { fuse } from './engine/fusion.ts'
import { publicCall, buildReportFromRecord } from './engine/report.ts'
import { withTimeLimit, type FusionSettings } from './engine/settings.ts'
import type { FusionEnd, FusionSession } from './fused-answer.ts'
import { membersOf } from './members.ts'

/** Share of the request's time that the fusion may use, so that its best result is sent before the deadline. */
const shareOfTime = 0.9

/** Calls whose text is the reply. */
const writing: ReadonlySet<CallRole> = new Set(['synthesis', 'fallback'])

export interface FusionAnswerOptions {
  /** The backends that deliberate. */
  readonly backends: readonly Backend[]
  readonly settings: FusionSettings
  /** The backend that wrote earlier in this conversation. */
  readonly pinned: string | undefined
}

/** Answers a request to `svc-router/fusion` by deliberation, and adds a report if the format can carry one. */
export async function answerWithFusion(session: FusionSession, options: FusionAnswerOptions): Promise<FusionEnd> {
  const { context, port, signal, totalMs } = session
  const { conversation } = context
  const { backends, pinned } = options
  let end: readonly AnswerEvent[] = []
  const emit = (events: readonly AnswerEvent[]): Promise<void> | undefined => {
    const last = events.findIndex(({ type }) => type === 'finish')
    if (last === -1) return port.emit(events)
    // The report must precede the end of the answer, and is only known then.
    end = events.slice(last)
    return last === 0 ? undefined : port.emit(events.slice(0, last))
  }
  const settings = withTimeLimit(options.settings, totalMs * shareOfTime)
  const members = membersOf(backends, port.clock.nowMs())
  const request = { conversation, members, settings, ...(pinned === undefined ? {} : { pinned }) }
  const outcome = await fuse(request, { ...port, emit }, signal)
  session.recordFusion(outcome.record)
  noteWriter(session, backends, outcome.record)
  if (end.length > 0) {
    const report = buildReportFromRecord(outcome, settings.include)
    const { resultItem } = settings
    // An item is added only if the caller named it; otherwise the reply itself is the result.
    const shape = resultItem === 'mcp_call' || resultItem === 'native' ? resultItem : undefined
    const item = shape === undefined ? [] : [publicCall(shape, { arguments: {}, result: { status: 'ok', ...report } })]
    void port.emit([...item, { type: 'report', report: { fusion: report } }, ...end])
  }
  return { error: outcome.error, usage: outcome.usage }
}

/** The backend that wrote the reply holds the conversation in its cache: the next turn's writer is the same (contract 45.7). */
function noteWriter(
  { turn, port }: FusionSession,
  backends: readonly Backend[],
  { calls, totalMs }: FusionRecord,
): void {
  const written = calls.findLast(({ role, status }) => status === 'answered' && writing.has(role))
  const writer = backends.find(({ id }) => id === written?.member)
  if (writer !== undefined)
    turn?.answeredBy({ target: writer, startedMs: port.clock.monotonicMs() - totalMs }, backends, !needsMarks(writer))
}

import type { AnswerEvent } from '../domain/conversation.ts'
import type { FusedEnd, FusedSurface } from './fused-answer.ts'
import { fuse } from './fusion/fusion.ts'
import { membersOf } from './fusion/members.ts'
import { publicCall, reportOfFusion } from './fusion/report.ts'
import { shortened, type FusionSettings } from './fusion/settings.ts'
import type { Backend } from './ports.ts'

/** Of the time for the whole request, so that the best of what is there is sent before it is over. */
const shareOfTime = 0.9

export interface AliasOf {
  /** Those who deliberate. */
  readonly backends: readonly Backend[]
  readonly settings: FusionSettings
  /** The backend that wrote in this conversation before. */
  readonly pinned: string | undefined
}

/** Answers a turn of `svc-router/fusion` by deliberation, and says how that went where the format can. */
export async function fuseAlias(surface: FusedSurface, of: AliasOf): Promise<FusedEnd> {
  const { context, port, signal, totalMs } = surface
  const { conversation } = context
  const { backends, pinned } = of
  let end: readonly AnswerEvent[] = []
  const emit = (events: readonly AnswerEvent[]): Promise<void> | undefined => {
    const last = events.findIndex(({ type }) => type === 'finish')
    if (last === -1) return port.emit(events)
    // How it went is said before the answer ends, and is known only then.
    end = events.slice(last)
    return last === 0 ? undefined : port.emit(events.slice(0, last))
  }
  const settings = shortened(of.settings, totalMs * shareOfTime)
  const members = membersOf(backends)
  const request = { conversation, members, settings, ...(pinned === undefined ? {} : { pinned }) }
  const outcome = await fuse(request, { ...port, emit }, signal)
  surface.recordFusion(outcome.record)
  if (end.length > 0) {
    const report = reportOfFusion(outcome, settings.include)
    const { resultItem } = settings
    // Nobody asked for an item unless it was named: the reply itself is the result.
    const shape = resultItem === 'mcp_call' || resultItem === 'native' ? resultItem : undefined
    const item = shape === undefined ? [] : [publicCall(shape, { arguments: {}, result: { status: 'ok', ...report } })]
    void port.emit([...item, { type: 'report', report: { fusion: report } }, ...end])
  }
  return { error: outcome.error, usage: outcome.usage }
}

import type { Lane, LaneChoice } from './lane.ts'
import { RelayLane, TranslationLane } from './stream-lanes.ts'
import { WholeLane } from './whole-lane.ts'

/** The lane for one attempt: relay where both sides speak the same format, translation otherwise. */
export function openLane(choice: LaneChoice): Lane {
  if (!choice.context.conversation.stream) return new WholeLane(choice)
  if (choice.relay === undefined) {
    return new TranslationLane(choice.backendFormat.readAnswer(), choice.client.writeAnswer(choice.context))
  }
  return new RelayLane(
    choice.relay,
    choice.backendFormat.readAnswer(),
    choice.context,
    choice.backend.dialect.streamUsage,
  )
}

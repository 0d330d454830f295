import type { Lane, LaneOptions } from './lane.ts'
import { rejectingDisallowedCalls, rejectingUnofferedCalls } from './refuse-unoffered-calls.ts'
import { RelayLane } from './relay-lane.ts'
import { TranslationLane } from './translation-lane.ts'
import { WholeLane } from './whole-lane.ts'

/** Opens the lane for one attempt: a relay if `relayRulesFor` gave rules, otherwise a translation. */
export function openLane(given: LaneOptions): Lane {
  const offered = given.refusesOurCalls === true ? rejectingUnofferedCalls(given) : given
  const choice = offered.relay === undefined ? rejectingDisallowedCalls(offered) : offered
  if (!choice.context.conversation.stream) return new WholeLane(choice)
  if (choice.relay === undefined) {
    const { backend, backendFormat, client, context } = choice
    const { conversation, report } = context
    const writer = client.writeAnswer(context)
    return new TranslationLane(backendFormat.readAnswer(), writer, backend.issuer, conversation, report)
  }
  const { relay, backend, backendFormat, context } = choice
  return new RelayLane(relay, backendFormat.readAnswer(), context, backend.dialect.streamUsage, backend.issuer)
}

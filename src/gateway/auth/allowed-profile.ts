import type { Conversation } from '../../domain/conversation.ts'
import { ServiceError } from '../../domain/errors.ts'
import { embeddingsFormatId, type ClientFormatId } from '../../domain/format-id.ts'
import { aliasOf, fusionId, fusionToolType, profileNamed, type Profile } from '../../domain/profiles.ts'
import type { Principal } from '../ports.ts'
import { assertProfileAllowed, type EnforcedLimits } from './key-limits.ts'
import { unknownProfile, wrongEndpoint } from './unknown-profile.ts'

/**
 * Resolves the requested profile and checks that the plan (contract 5.4) and the key's limits allow it and any
 * attached fusion tool (contract 16.10).
 * @throws ServiceError `plan_required`, `model_not_found`, `invalid_request`, and as `assertProfileAllowed`
 */
export function allowedProfile(
  profiles: readonly Profile[],
  { plan, limits }: Pick<Principal, 'plan' | 'limits'>,
  conversation: Conversation,
  format: ClientFormatId,
): Profile {
  const name = conversation.profile
  const profile = profileNamed(name, profiles)
  if (!plan.premium) {
    const premium = name === fusionId || name === aliasOf(fusionId) || profile?.premium === true ? name : undefined
    const what = premium ?? (conversation.fusionTool === undefined ? undefined : `The tool ${fusionToolType}`)
    if (what !== undefined) throw new ServiceError('plan_required', { words: { what, plan: plan.name } })
  }
  if (profile === undefined) throw unknownProfile(name, profilesWithin(profiles, limits))
  if (limits !== undefined) {
    assertProfileAllowed(limits, profile.id)
    if (conversation.fusionTool !== undefined) assertProfileAllowed(limits, fusionId, `the tool ${fusionToolType}`)
  }
  if ((profile.embeddings !== undefined) !== (format === embeddingsFormatId)) throw wrongEndpoint(profile, profiles)
  return profile
}

/** The profiles that a key may use. */
export function profilesWithin(profiles: readonly Profile[], limits: EnforcedLimits | undefined): readonly Profile[] {
  const ids = limits?.profiles
  return ids === undefined ? profiles : profiles.filter(({ id }) => ids.has(id))
}

import { invalidRequest, ServiceError } from '../../domain/errors.ts'
import { isServedByOwn, nearest, type Profile } from '../../domain/profiles.ts'

/** The shape of model names. */
const modelShape = /^[\w.:/@-]{1,60}$/
/** Prefixes of API keys, ours and other services'. */
const secretShape = /^(sk|pk|gsk|ghp|xai|AIza|eyJ)[-_A-Za-z0-9]{8}/

/** The 404 `model_not_found` error for a name that no profile has: lists the profiles and suggests a similar name. */
export function unknownProfile(name: string, profiles: readonly Profile[]): ServiceError {
  const known = profiles.map(({ id }) => id)
  const near = nearest(name, known)
  const suggestion = near === undefined ? '' : ` Did you mean "${near}"?`
  // A value that cannot be a model name could be a prompt or a key in the wrong field, so it is not repeated.
  const named = modelShape.test(name) && !secretShape.test(name) ? `"${name}"` : 'with the name in "model"'
  return new ServiceError('model_not_found', {
    param: 'model',
    words: { named, suggestion, profiles: known.join(', ') },
  })
}

/** The error if a profile has no backend for the account: a provider of its own helps only if that would serve it. */
export function unservedProfile(profile: Profile): ServiceError {
  const words = { profile: profile.id }
  return isServedByOwn(profile)
    ? new ServiceError('no_provider_connected', { action: 'providersUrl', words: { ...words, next: 'Connect one' } })
    : new ServiceError('no_provider_connected', { words: { ...words, next: 'See what to do' } })
}

/**
 * The error for a conversation sent to an embeddings profile, and for embeddings requested from a conversation
 * profile (contract 2.40).
 */
export function wrongEndpoint(profile: Profile, profiles: readonly Profile[]): ServiceError {
  if (profile.embeddings !== undefined) {
    return invalidRequest('model', `"${profile.id}" supports only embeddings. Send the request to /v1/embeddings.`)
  }
  const giving = profiles.filter(({ embeddings }) => embeddings !== undefined).map(({ id }) => id)
  const instead =
    giving.length === 0
      ? 'No profile of this service supports them.'
      : `Profiles that support them: ${giving.join(', ')}.`
  return invalidRequest('model', `"${profile.id}" does not support embeddings. ${instead}`)
}

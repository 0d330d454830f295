import { invalidRequest, ServiceError } from '../domain/errors.ts'
import { nearest, type Profile } from '../domain/profiles.ts'

/** How names of models look. */
const modelShape = /^[\w.:/@-]{1,60}$/
/** How keys begin, ours and other services'. */
const secretShape = /^(sk|pk|gsk|ghp|xai|AIza|eyJ)[-_A-Za-z0-9]{8}/

/** The refusal of a name that no profile has: 404 `model_not_found`, with what there is and what may have been meant. */
export function unknownProfile(name: string, profiles: readonly Profile[]): ServiceError {
  const known = profiles.map(({ id }) => id)
  const near = nearest(name, known)
  const suggestion = near === undefined ? '' : ` Did you mean "${near}"?`
  // What is no name of a model could be a prompt or a key that was put into the wrong field: it is not repeated.
  const named = modelShape.test(name) && !secretShape.test(name) ? `"${name}"` : 'of the name in model'
  return new ServiceError('model_not_found', {
    param: 'model',
    words: { named, suggestion, profiles: known.join(', ') },
  })
}

/** The refusal of a conversation for a profile that gives embeddings, and of embeddings for one that holds conversations. */
export function wrongEndpoint(profile: Profile, profiles: readonly Profile[]): ServiceError {
  if (profile.embeddings !== undefined) {
    return invalidRequest('model', `"${profile.id}" gives embeddings and nothing else. Send it to /v1/embeddings.`)
  }
  const giving = profiles.filter(({ embeddings }) => embeddings !== undefined).map(({ id }) => id)
  const instead = giving.length === 0 ? 'No profile of this service does.' : `Profiles that do: ${giving.join(', ')}.`
  return invalidRequest('model', `"${profile.id}" does not give embeddings. ${instead}`)
}

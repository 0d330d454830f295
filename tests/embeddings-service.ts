import { Service, type ServiceOptions } from './service.ts'

/**
 * The profile that gives embeddings, beside `svc-router/frontier`, which holds conversations over the same providers.
 */
export const embeddingsProfile = 'svc-router/embeddings'

/**
 * The options of a service with two backends for conversations and two for equal embeddings, each with its own provider.
 */
export function withEmbeddings(settings: ServiceOptions['settings'] = {}): ServiceOptions {
  const timeouts = { connect: '500ms', whole_answer: '3s' }
  return {
    formats: ['openai-chat', 'openai-responses'],
    settings: {
      backends: {
        'talk-a': { provider: 'alpha', model: 'model-of-alpha' },
        'talk-b': { provider: 'beta', model: 'model-of-beta' },
        'vectors-a': { provider: 'alpha', model: 'vectors-1', embeddings: 'vectors-1', timeouts },
        'vectors-b': { provider: 'beta', model: 'org/vectors-1', embeddings: 'vectors-1', timeouts },
      },
      profiles: { [embeddingsProfile]: { backends: ['vectors-a', 'vectors-b'] } },
      ...settings,
    },
  }
}

/** A service of its own with `withEmbeddings`. */
export function startEmbeddingsService(settings?: ServiceOptions['settings']): Promise<Service> {
  return Service.start(withEmbeddings(settings))
}

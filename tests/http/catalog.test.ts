import { expect, test } from 'vitest'
import { linksFor } from '../../src/domain/links.ts'
import { Catalog } from '../../src/http/catalog.ts'

test("a profile's context window is the smallest that its backends are known to have", () => {
  const profile = (id: string, backends: readonly string[]) => ({
    id,
    description: '',
    backends,
    premium: false,
    quotaUnits: 1,
  })
  const catalog = new Catalog({
    baseUrl: 'http://127.0.0.1:8787/v1',
    links: linksFor('http://127.0.0.1:8787'),
    plans: [],
    createdAt: 0,
    backends: [
      { id: 'large', contextWindow: 1_000_000 },
      { id: 'small', contextWindow: 32_000 },
      { id: 'silent', contextWindow: undefined },
    ],
    profiles: [profile('all', ['large', 'silent', 'small']), profile('one', ['large']), profile('none', ['silent'])],
  })
  const { models } = catalog.models() as { models: { context_window: number; max_context_window: number }[] }
  expect(models.map((model) => [model.context_window, model.max_context_window])).toEqual([
    [32_000, 32_000],
    [1_000_000, 1_000_000],
    [200_000, 200_000],
  ])
})

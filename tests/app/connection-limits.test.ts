import { expect, test } from 'vitest'
import { connectionLimits, wantedDescriptors } from '../../src/app/connection-limits.ts'

test.each([64, 256, 1_024, 4_096, 20_000, 27_887])(
  'with %i descriptors, no kind of connection leaves none for the others or for files',
  (descriptors) => {
    const { api, probes, web, upstream, provider } = connectionLimits(20_000, descriptors)
    expect(Math.min(api, probes, web, upstream)).toBeGreaterThan(0)
    expect(upstream).toBeGreaterThanOrEqual(Math.min(4_096, api))
    const spare = descriptors - (api + probes * 2 + web + upstream)
    expect(spare).toBeGreaterThanOrEqual(Math.min(256, descriptors / 4))
    expect(api).toBeLessThan(20_000)
    // One provider can use most of the upstream connections, but not all.
    expect(provider).toBeGreaterThanOrEqual(upstream * 0.8)
    expect(provider).toBeLessThan(upstream)
  },
)

test('with the descriptors that the configuration wants, it gets all of its connections', () => {
  for (const configured of [10, 1_000, 20_000, 100_000]) {
    const limits = { api: configured, probes: 256, web: 2_000, upstream: 5_120, provider: 4_096 }
    expect(connectionLimits(configured)).toMatchObject({ api: configured })
    expect(connectionLimits(configured, 1_048_576)).toEqual(limits)
    expect(connectionLimits(configured, wantedDescriptors(configured) * 2).api).toBe(configured)
  }
})

import { describe, expect, test } from 'vitest'
import { openConfigured } from '../../src/providers/catalog.ts'
import { fillBaseUrl, vendorUrl } from '../../src/providers/cloud-location.ts'
import { findVendor, vendorEndpoint, vendors } from '../../src/providers/registry.ts'
import { defaultTimeouts } from '../../src/providers/timeouts.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { accountFile } from './google-account.ts'
import { openPools } from './support.ts'

describe('the location of a vendor', () => {
  test('the base URL depends on the region and on the project of the credential', () => {
    expect(fillBaseUrl(vendorUrl(vendors.bedrock, 'us-east-1')!, { region: 'us-east-1' })).toBe(
      'https://bedrock-mantle.us-east-1.api.aws/v1',
    )
    const place = { region: 'europe-west4', project: 'p-1' }
    expect(fillBaseUrl(vendorUrl(vendors.vertex, undefined)!, place)).toBe(
      'https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/publishers/google',
    )
    expect(fillBaseUrl(vendorUrl(vendors.vertex, 'europe-west4')!, place)).toBe(
      'https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4/publishers/google',
    )
  })

  test('without them there is no base URL, and no value can lead to another host', () => {
    expect(() => fillBaseUrl(vendors.bedrock.baseUrl, {})).toThrow('The base URL needs a region.')
    expect(() => fillBaseUrl(vendors.vertex.baseUrl, { region: 'us-east-1' })).toThrow('The base URL needs a project.')
    for (const region of ['a.example.com/', 'us-east-1.example.com', 'us-east-1@', '', 'US']) {
      expect(() => fillBaseUrl(vendors.bedrock.baseUrl, { region })).toThrow(TypeError)
    }
    expect(fillBaseUrl('https://example.com/{other}', {})).toBe('https://example.com/{other}')
  })
})

test('Gemini is called natively unless its OpenAI-compatible endpoint is configured', () => {
  const gemini = findVendor('gemini')!
  expect(vendorEndpoint(gemini)).toMatchObject({
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    authHeader: 'x-goog-api-key',
  })
  const compatible = vendorEndpoint(gemini, 'openai-chat')
  expect(compatible).toMatchObject({
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    authHeader: 'authorization',
  })
  expect(compatible.dialect.refusedFields).toContain('store')
})

test('configured backends of both clouds open with the values of their credentials', () => {
  const shared = { model: 'm', failureDomain: 'cloud', timeouts: defaultTimeouts(false) }
  const aws = { accessKeyId: 'AKIAMADEUP0MADEUP000', secretAccessKey: 'made-up' }
  const pools = openPools()
  const open = (provider: 'vertex' | 'bedrock', credential: object, region?: string) =>
    openConfigured({ ...shared, id: 'x', provider, region, credential: new Secret(JSON.stringify(credential)) }, pools)
  expect(open('vertex', accountFile).format).toBe('gemini')
  expect(open('bedrock', aws, 'us-east-1').format).toBe('openai-chat')
  expect(open('bedrock', { ...aws, region: 'us-east-1' }).format).toBe('openai-chat')
  expect(() => open('bedrock', aws)).toThrow(TypeError)
  expect(() => open('vertex', aws)).toThrow(TypeError)
})

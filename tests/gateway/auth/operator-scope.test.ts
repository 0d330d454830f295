import { expect, test } from 'vitest'
import { assertManagedScope } from '../../../src/gateway/auth/operator-scope.ts'

test.each([
  ['file_id', { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] }] }],
  [
    'file_id',
    { messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: 'f' } }] }] },
  ],
  ['vector_store_ids', { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }],
  ['file_ids', { tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['file_1'] } }] }],
  ['container', { tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }],
  ['container', { container: 'container_1', messages: [] }],
  ['connector_id', { tools: [{ type: 'mcp', server_label: 'mail', connector_id: 'connector_gmail' }] }],
  ['container', { container: { id: 'container_1', skills: [] }, messages: [] }],
  ['audio', { messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] }],
  ['voice', { messages: [], audio: { voice: { id: 'voice_1' }, format: 'wav' } }],
  ['input', { input: [{ type: 'image_generation_call', id: 'ig_1' }] }],
  ['cached_content', { messages: [], extra_body: { google: { cached_content: 'cachedContents/1' } } }],
  ['prompt', { prompt: { id: 'pmpt_1' } }],
  ['store', { store: true, messages: [] }],
  ['models', { models: ['vendor/dearest'], messages: [] }],
  ['plugins', { plugins: [{ id: 'web' }], messages: [] }],
  ['preset', { preset: 'operators-own', messages: [] }],
  ['tools', { input: 'x', tools: [{ type: 'image_generation' }] }],
  ['tools', { messages: [], tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-4-6' }] }],
  ['data_sources', { data_sources: [{ type: 'azure_search', parameters: {} }], messages: [] }],
  ['n', { n: 8, messages: [] }],
])('%s of the operator’s organization is rejected', (param, body) => {
  expect(() => assertManagedScope(body)).toThrow(expect.objectContaining({ facts: expect.objectContaining({ param }) }))
})

// Vertex AI opens gs: with the operator's service account, and Gemini its own files with the operator's key.
test.each([
  ['url', { messages: [{ content: [{ type: 'image_url', image_url: { url: 'gs://bucket/secret.png' } }] }] }],
  ['url', { messages: [{ content: [{ type: 'document', source: { type: 'url', url: 's3://bucket/secret.pdf' } }] }] }],
  ['image_url', { input: [{ content: [{ type: 'input_image', image_url: 'GS://bucket/secret.png' }] }] }],
  ['file_url', { input: [{ content: [{ type: 'input_file', file_url: 'gs://bucket/secret.pdf' }] }] }],
  ['fileUri', { contents: [{ parts: [{ fileData: { fileUri: 'gs://bucket/secret.pdf' } }] }] }],
  [
    'fileUri',
    { contents: [{ parts: [{ fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/1' } }] }] },
  ],
])('%s that a provider opens with the operator’s credential is rejected', (param, body) => {
  expect(() => assertManagedScope(body)).toThrow(expect.objectContaining({ facts: expect.objectContaining({ param }) }))
})

test('public addresses, data URLs, and the caller’s own words are allowed', () => {
  const body = {
    audio: { voice: 'alloy', format: 'wav' },
    models: [],
    preset: null,
    messages: [
      { role: 'user', content: 'gs://bucket/x' },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/x.png' } }] },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] },
      { role: 'assistant', content: [{ type: 'text', text: 'x', annotations: [{ url: 'about:blank' }] }] },
    ],
    input: [{ type: 'image_generation_call', id: 'ig_1', result: 'AAAA' }],
    tools: [{ type: 'function', name: 'read', parameters: { default: { image_url: 'gs://x/y' } } }],
  }
  expect(() => assertManagedScope(body)).not.toThrow()
})

test('names in the caller’s own tools, schemas, and text are allowed', () => {
  const parameters = { type: 'object', properties: { file_id: { type: 'string' } }, default: { container: 'x' } }
  const body = {
    n: 1,
    metadata: { file_id: 'mine' },
    input: 'file_id',
    prompt: 'Say this',
    tools: [
      { type: 'function', name: 'read', parameters },
      { name: 'read', input_schema: parameters },
      { type: 'mcp', server_label: 'mine', server_url: 'https://example.com' },
    ],
    messages: [
      { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: 'read', input: { file_id: 'mine' } }] },
    ],
  }
  expect(() => assertManagedScope(body)).not.toThrow()
})

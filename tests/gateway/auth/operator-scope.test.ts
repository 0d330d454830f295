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
  ['prompt', { prompt: { id: 'pmpt_1' } }],
  ['store', { store: true, messages: [] }],
  ['n', { n: 8, messages: [] }],
])('%s of the operator’s organization is rejected', (param, body) => {
  expect(() => assertManagedScope(body)).toThrow(expect.objectContaining({ facts: expect.objectContaining({ param }) }))
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

import { expect, test } from 'vitest'
import { readProviderError } from '../../src/domain/provider-error.ts'

test.each([
  ['{"error":"model not found"}', 'model not found'],
  ['{"detail":[{"msg":"bad"}]}', '[{"msg":"bad"}]'],
  ['{"message":"loading model"}', 'loading model'],
  ['event: error\ndata: {"message":"stopped"}\n\n', 'stopped'],
  ['<html>Bad Gateway</html>', '<html>Bad Gateway</html>'],
  ['  ', undefined],
])('the message is extracted from %j', (body, expected) => {
  expect(readProviderError(body)).toBe(expected)
})

test('a message has a maximum length, is on one line, and contains no credentials, not even at its end', () => {
  const secret = 'sk-proj-abc123def456ghi789jkl012'
  const long = readProviderError(JSON.stringify({ error: { message: `a\nb\u001b[31m ${'x '.repeat(490)}${secret}` } }))
  expect(long?.length).toBeLessThanOrEqual(1_000)
  expect(long).not.toMatch(/[\p{Cc}]|sk-proj/u)
  expect(readProviderError(`{"error":"key ${secret}"}`)).toBe(`key ${'*'.repeat(secret.length)}`)
})

import { expect, test } from 'vitest'
import { clientFamilyOf } from '../../src/domain/client-family.ts'

test.each([
  ['claude-cli/2.1.329 (external, sdk-cli)', 'claude-code'],
  ['codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm', 'codex'],
  ['opencode/1.18.0 ai-sdk/provider-utils/4.0', 'opencode'],
  ['ai/7.0.173 ai-sdk-provider-utils/5.0.81 node.js/24', 'ai-sdk'],
  ['OpenAI/JS 7.55.0', 'openai-sdk'],
  ['AsyncOpenAI/Python 2.8.0', 'openai-sdk'],
  ['Anthropic/JS 0.80.0', 'anthropic-sdk'],
  ['curl/8.5.0', 'other'],
  [`${'x'.repeat(300)} langchain`, 'other'],
  [undefined, 'other'],
])('a client that says %s is counted as %s', (userAgent, family) => {
  expect(clientFamilyOf(userAgent)).toBe(family)
})

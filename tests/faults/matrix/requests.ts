import type { ClientFormat, Mode } from './upstream-cells.ts'

export const paths: Readonly<Record<ClientFormat, string>> = {
  'openai-chat': '/chat/completions',
  'openai-responses': '/responses',
  'anthropic-messages': '/messages',
}

/** The body of a cell's request. */
export function bodyFor(
  { client, mode }: { readonly client: ClientFormat; readonly mode: Mode },
  model: string,
): object {
  const prompt =
    client === 'openai-responses' ? { input: 'Say it.' } : { messages: [{ role: 'user', content: 'Say it.' }] }
  const limit = client === 'anthropic-messages' ? { max_tokens: 100 } : {}
  return { model, stream: mode === 'stream', ...prompt, ...limit }
}

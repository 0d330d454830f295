/**
 * Hosted tools of vendors that support Responses but neither namespaces nor custom tools (`Dialect.hostedTools`). Each
 * entry is documented by the vendor or listed in its own error message.
 */
export const hostedTools = {
  /** OpenRouter reports that it has no endpoint for a request with a namespace. */
  openrouter: ['web_search', 'web_search_preview', 'openrouter:web_search'],
  groq: ['browser_search', 'code_interpreter', 'mcp'],
  /** From the error with which xAI rejects a namespace. */
  xai: [
    'web_search',
    'x_search',
    'image_generation',
    'collections_search',
    'file_search',
    'code_execution',
    'code_interpreter',
    'mcp',
    'shell',
  ],
  /** For gpt-oss; other models support namespaces from version 0.25 on. */
  vllm: ['web_search_preview', 'code_interpreter', 'mcp'],
  lmStudio: ['mcp'],
} as const

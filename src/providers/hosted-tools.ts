/**
 * The hosted tools of vendors that speak responses and know neither namespaces nor custom tools (`Dialect.hostedTools`).
 * Each is evidence, not a guess: what a vendor documents or names in its own refusal.
 */
export const hostedTools = {
  /** Finds no endpoint for a request with a namespace. */
  openrouter: ['web_search', 'web_search_preview', 'openrouter:web_search'],
  groq: ['browser_search', 'code_interpreter', 'mcp'],
  /** All that its own refusal of a namespace names. */
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
  /** Of gpt-oss; other models know namespaces from version 0.25 on. */
  vllm: ['web_search_preview', 'code_interpreter', 'mcp'],
  lmStudio: ['mcp'],
} as const

/** Cache lifetime of public content that changes only with the configuration. */
const keptSeconds = 300

/** A public text response, the same for every visitor. */
export function textAnswer(type: 'text/plain' | 'text/markdown', text: string): Response {
  return new Response(text, {
    headers: { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': `public, max-age=${keptSeconds}` },
  })
}

/** The same as JSON, readable by other sites (CORS). `seconds` is the cache lifetime; 0 disables caching and CORS. */
export function jsonAnswer(value: unknown, seconds = keptSeconds): Response {
  return new Response(`${JSON.stringify(value)}\n`, {
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': seconds === 0 ? 'no-store' : `public, max-age=${seconds}`,
      ...(seconds > 0 && { 'Access-Control-Allow-Origin': '*' }),
    },
  })
}

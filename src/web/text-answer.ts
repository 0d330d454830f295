/** How long others may keep what is the same for everybody and changes with the configuration alone. */
const keptSeconds = 300

/** A public text that is the same for everybody. */
export function textAnswer(type: 'text/plain' | 'text/markdown', text: string): Response {
  return new Response(text, {
    headers: { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': `public, max-age=${keptSeconds}` },
  })
}

/** The same as JSON, for machines of anybody: other sites may read it. `seconds` is how long it may be kept. */
export function jsonAnswer(value: unknown, seconds = keptSeconds): Response {
  return new Response(`${JSON.stringify(value)}\n`, {
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': seconds === 0 ? 'no-store' : `public, max-age=${seconds}`,
      ...(seconds > 0 && { 'Access-Control-Allow-Origin': '*' }),
    },
  })
}

import type { html } from 'hono/html'

/** HTML in which all interpolated values are escaped. */
export type Html = ReturnType<typeof html>

/** The header that carries a trace across services (W3C Trace Context). */
export const traceHeader = 'traceparent'

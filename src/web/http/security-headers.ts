/** `max-age` of Strict-Transport-Security. */
const hstsSeconds = 63_072_000

/**
 * Sets the security headers of every response: no external resources, no inline scripts, no framing by other sites, and
 * no referrer for other sites. `formTargets` are additional origins that forms may lead to (contract 20.3).
 */
export function setSecurityHeaders(headers: Headers, isHttps: boolean, formTargets: readonly string[] = []): void {
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    `form-action ${["'self'", ...formTargets].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ]
  headers.set('Content-Security-Policy', policy.join('; '))
  headers.set('X-Content-Type-Options', 'nosniff')
  headers.set('X-Frame-Options', 'DENY')
  // Not `no-referrer`, which makes browsers send `Origin: null` for our own forms.
  headers.set('Referrer-Policy', 'same-origin')
  headers.set('Cross-Origin-Opener-Policy', 'same-origin')
  headers.set('Cross-Origin-Resource-Policy', 'same-origin')
  headers.set('Permissions-Policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()')
  if (isHttps) headers.set('Strict-Transport-Security', `max-age=${hstsSeconds}; includeSubDomains`)
  if (!headers.has('Cache-Control')) headers.set('Cache-Control', 'no-store')
}

/** How long browsers remember that the app is only reached over https. */
const hstsSeconds = 63_072_000

/**
 * Sets what every answer carries: nothing is loaded from anywhere else, nothing inline runs, no other site shows us in a
 * frame, and where a visitor came from is told to nobody but us. `formTargets` are origins that a form may lead to.
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
  // Not `no-referrer`: with it browsers send `Origin: null` from our own forms.
  headers.set('Referrer-Policy', 'same-origin')
  headers.set('Cross-Origin-Opener-Policy', 'same-origin')
  headers.set('Cross-Origin-Resource-Policy', 'same-origin')
  headers.set('Permissions-Policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()')
  if (isHttps) headers.set('Strict-Transport-Security', `max-age=${hstsSeconds}; includeSubDomains`)
  if (!headers.has('Cache-Control')) headers.set('Cache-Control', 'no-store')
}

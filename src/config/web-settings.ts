import { z } from 'zod'
import { env, group, shaped, text, url, whole } from './settings.ts'

/** How many proxies stand in front of a listener. */
export const trustedProxies = (what: string) =>
  whole(0, 10)
    .optional()
    .describe(
      `Proxies of yours in front of ${what}: so many entries at the end of X-Forwarded-For are believed. Default 0.`,
    )

/** Where the web app listens. */
export const appListen = group({
  host: text('a host name or address', 255).optional().describe('Default: that of listen.'),
  port: whole(0, 65_535)
    .optional()
    .describe("Default: the one behind the API's, such as 8788. 0 lets the system choose."),
  trusted_proxies: trustedProxies('the app'),
})
  .optional()
  .describe('Where the web app is served: account, keys, sign-in.')

/** How letters are sent. */
export const mail = group({
  host: text('a host name or address', 255).describe('The mail server.'),
  port: whole(1, 65_535).optional().describe('Default 587, and 465 with security: tls.'),
  security: z
    .enum(['starttls', 'tls', 'none'], { error: 'expected starttls, tls or none' })
    .optional()
    .describe('Default starttls. none is for a server on this machine.'),
  user: text('a user name', 255).optional().describe('Where the server asks who sends.'),
  password_env: env('The variable with its password.').optional(),
  from: shaped(
    /^[^\r\n<>]{0,100}<?[^\s<>@]{1,64}@[^\s<>@]+>?$/,
    'a sender such as "svc-router <no-reply@example.com>"',
  ).describe('Whom letters are from.'),
  support: shaped(/^[^\s<>@]+@[^\s<>@]+$/, 'an address such as "support@example.com"')
    .optional()
    .describe('Whom messages of the support page are sent to. They are kept, too: svc-router tickets list.'),
})
  .optional()
  .describe('Sends sign-in codes by SMTP. Without it local mode shows them on a page, and production sends none.')

/** How keys that were found in public are reported. */
export const leakedKeys = group({
  github: group({
    keys_url: url("the address of GitHub's public keys")
      .optional()
      .describe('Where the keys are read that reports are signed with. Default that of github.com.'),
  })
    .optional()
    .describe("GitHub's secret scanning, which reports to /leaked-keys/github below app_url."),
})
  .optional()
  .describe('How keys that were found in public are reported to us.')

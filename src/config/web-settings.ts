import { z } from 'zod'
import { env, flag, group, isProviderUrl, shaped, text, url, whole } from './settings.ts'

const maxOrigins = 100
const originShape = /^(?:\*|https?:\/\/[a-z0-9.-]{1,253}(?::\d{1,5})?|https?:\/\/\[[0-9a-f:]{2,39}\](?::\d{1,5})?)$/

/** How many proxies are in front of a listener. */
export const trustedProxies = (what: string) =>
  whole(0, 10)
    .optional()
    .describe(
      `How many of your own proxies are in front of ${what}: that many entries at the end of X-Forwarded-For are trusted. Default 0.`,
    )

/** Where the web app listens. */
export const appListen = group({
  host: text('a host name or address', 255).optional().describe('Default: the host of listen.'),
  port: whole(0, 65_535)
    .optional()
    .describe("Default: the API's port plus one, such as 8788. 0 lets the system choose."),
  trusted_proxies: trustedProxies('the app'),
})
  .optional()
  .describe('Where the web app (account, keys, sign-in) listens.')

/** The API for operators' programs. */
export const adminApi = group({
  enabled: flag.optional().describe('Default false.'),
})
  .optional()
  .describe('The admin API at /admin/v1 of the web app, for tokens that "svc-router admin-tokens create" makes.')

/** Where Prometheus reads metrics. */
export const metricsListen = group({
  host: text('a host name or address', 255)
    .optional()
    .describe('Default 127.0.0.1. There is no authentication: never use a public address.'),
  port: whole(0, 65_535).optional().describe('Default 9464. 0 lets the system choose.'),
})
  .optional()
  .describe('Serves metrics for Prometheus at /metrics, on a separate listener. Off if omitted.')

/** Where traces are sent. */
export const tracing = group({
  endpoint: url('the URL of an OpenTelemetry collector, such as http://127.0.0.1:4318/v1/traces').describe(
    'Receives traces by OTLP over HTTP, in JSON.',
  ),
  sample_rate: z
    .number({ error: 'expected a share from 0 to 1, such as 0.01' })
    .min(0, { error: 'expected a share from 0 to 1, such as 0.01' })
    .max(1, { error: 'expected a share from 0 to 1, such as 0.01' })
    .optional()
    .describe(
      'The share of requests that are traced. Requests that fail or fail over are always traced. Default 0.01.',
    ),
  trust_callers: flag
    .optional()
    .describe(
      'Whether the sampled flag in the traceparent header of a caller decides instead of sample_rate. Use true only if all callers are yours. Default false.',
    ),
})
  .optional()
  .describe('Sends traces to an OpenTelemetry collector. Off if omitted.')

/** How email is sent. */
export const mail = group({
  host: text('a host name or address', 255).describe('The mail server.'),
  port: whole(1, 65_535).optional().describe('Default 587, or 465 with security: tls.'),
  security: z
    .enum(['starttls', 'tls', 'none'], { error: 'expected starttls, tls, or none' })
    .optional()
    .describe('Default starttls. Use none only for a server on this machine.'),
  user: text('a user name', 255).optional().describe('The SMTP user name, if the server requires one.'),
  password_env: env('The variable with the SMTP password.').optional(),
  from: shaped(
    /^[^\r\n<>]{0,100}<?[^\s<>@]{1,64}@[^\s<>@]+>?$/,
    'a sender such as "svc-router <no-reply@example.com>"',
  ).describe('The sender of all email.'),
  support: shaped(/^[^\s<>@]+@[^\s<>@]+$/, 'an address such as "support@example.com"')
    .optional()
    .describe('Receives the messages from the support page. They are also stored: svc-router tickets list.'),
})
  .optional()
  .describe('Sends sign-in codes by SMTP. Without it, local mode shows them on a page, and production sends none.')

/** Where alerts of budgets are sent, in addition to email. */
export const budgetAlerts = group({
  webhook_url: url('the URL of your program', isProviderUrl).describe('Receives a signed POST for each alert.'),
  webhook_secret_env: env(
    'The variable with the secret that signs alerts, at least 16 characters. Default SVC_ROUTER_WEBHOOK_SECRET.',
  ).optional(),
})
  .optional()
  .describe('Sends the alerts of all budgets to a program of yours, in addition to email. Off if omitted.')

/** How leaked keys are reported to us. */
export const leakedKeys = group({
  github: group({
    keys_url: url("the address of GitHub's public keys")
      .optional()
      .describe('Where to fetch the public keys that verify the reports. Default: the URL of github.com.'),
  })
    .optional()
    .describe("GitHub's secret scanning, which sends its reports to /leaked-keys/github under app_url."),
})
  .optional()
  .describe('How API keys found in public are reported to the service.')

/** Which web pages may call the API. */
export const cors = group({
  origins: z
    .array(shaped(originShape, 'an origin such as https://app.example.com, or *'), {
      error: 'expected a list of origins',
    })
    .max(maxOrigins, { error: `expected at most ${maxOrigins} origins` })
    .optional()
    .describe('Origins whose pages may call the API, or * for all. Default none.'),
})
  .optional()
  .describe('Which web pages may call the API from a browser. Anyone who opens a page can read a key in it.')

import type { ErrorHelp } from './error-help.ts'

const keys = { path: '/account/keys', name: 'Your keys' } as const
const providers = { path: '/account/upstreams', name: 'Your providers' } as const
const upgrade = { path: '/billing/upgrade', name: 'Upgrade' } as const

/** Keys, plans and providers: what an account may do, and with what. */
export const accessHelp = {
  key_missing: {
    why: 'The request had no `Authorization` header, or one without a key. Often the variable that should hold the key is not set in the shell or the service that runs your program.',
    mend: [
      'Get a key: your email address and the code that we send to it are enough.',
      'Put it into the variable that your client reads, such as `SVC_ROUTER_API_KEY`, where the program starts.',
      'Send the request again, with `Authorization: Bearer sk_svc_…`. Anthropic’s clients may send it as `x-api-key`.',
    ],
    at: { path: '/account/setup', name: 'Get a key' },
    example: {},
  },
  key_malformed: {
    why: 'What was sent cannot be one of our keys: it has another shape, or its last six characters, a checksum, do not fit the rest. That is decided without looking anything up, so a mistyped key is told at once.',
    mend: [
      'Keys start with `sk_svc_` and have 45 characters, without spaces or quotes around them.',
      'If the message names another provider, the variables of two services are mixed up: send that key there, and ours here.',
      'If part of the key is lost, make a new one: a key is shown only once, and nobody can show it again.',
    ],
    at: keys,
    example: { words: { reason: 'The key is incomplete or mistyped: its checksum does not hold.' } },
  },
  key_inactive: {
    why: 'The key has the right shape, but it is not in use here: it was never made by this service, it is disabled or past its end, or its account is suspended.',
    mend: [
      'Check that the base URL is that of the service which made the key.',
      'Look at the list of your keys: an old one may have ended after it was rotated.',
      'Make a new key there and put it where the old one was.',
    ],
    at: keys,
    example: {},
  },
  key_revoked: {
    why: 'Somebody with access to the account revoked this key, or it was found in public and revoked to protect the account. Revoking is for ever.',
    mend: [
      'Make a new key and put it where the revoked one was.',
      'If you cannot sign in, use recovery: the same email address gets a new key.',
      'If nobody of yours revoked it, look at the other keys and the sessions of the account, too.',
    ],
    at: keys,
    example: {},
  },
  auth_unavailable: {
    why: 'The store of keys did not answer, so nobody can say whether your key is good. A 401 is only ever said when that is certain.',
    mend: ['Send the same request again after a second. Nothing was counted.', 'If it stays, look at the status page.'],
    at: { path: '/status', name: 'Status' },
    example: { retryAfterSeconds: 1 },
  },
  plan_required: {
    why: 'The profile or the tool is premium, and the account’s plan does not have it. It was refused before any provider was asked, and nothing was counted.',
    mend: [
      'Ask for `svc-router/frontier` instead, or leave the tool out.',
      'Or upgrade: the new plan holds at once, with the same key.',
    ],
    at: upgrade,
    example: { words: { what: 'svc-router/fusion', plan: 'Free' } },
  },
  key_profile_not_allowed: {
    why: 'The key has a limit that names the profiles which it may use, and this one is not among them. The tool `svc-router:fusion` belongs to `svc-router/fusion`. It was refused before any provider was asked, and nothing was counted.',
    mend: [
      'Ask for a profile that the message names: `GET /v1/models` lists those alone.',
      'Or allow this one, under “Limits” beside the key. That holds within a second, with the same key.',
    ],
    at: keys,
    example: { param: 'model', words: { what: 'svc-router/fusion', profiles: 'svc-router/frontier' } },
  },
  key_address_not_allowed: {
    why: 'The key is good, but it has a limit that names the addresses from which it may be used, and the request came from another. Nothing was counted, and nothing of the account is told to that address.',
    mend: [
      'The message says which address we saw. Behind a company’s network or in a cloud it is another than the one of your machine.',
      'If it is yours, allow it under “Limits” beside the key. That holds within a second.',
      'If it is not, somebody else has your key: rotate it, with no overlap.',
    ],
    at: keys,
    example: { words: { address: '203.0.113.7' } },
  },
  insufficient_quota: {
    why: 'The account has used all the requests of this month. They come back at the start of the next month (UTC), which `resets_at` and `X-Quota-Reset` tell in seconds since 1970. More keys do not help: the month belongs to the account.',
    mend: [
      'Upgrade: the larger month holds at once, and what was used stays counted.',
      'Or wait for the next month. Trying again before then is of no use.',
    ],
    at: upgrade,
    example: {
      resetsAt: 1_796_083_200,
      words: { used: 500, limit: 500, plan: 'Free', resetsOn: '1 Dec 2026, 00:00 UTC' },
    },
  },
  rate_limit_exceeded: {
    why: 'More requests came in the last 60 seconds than the plan allows, or than this key may send where it has a limit of its own; or an account made more lookups or sent more bytes in refused requests than one minute allows. The message says which. The plan’s minute slides: it is not a minute of the clock.',
    mend: [
      'Wait as many seconds as `Retry-After` says. Who waits that long is not refused again.',
      'Most clients do it by themselves. In a program of your own, send fewer at once: `X-RateLimit-Remaining` says how many are left.',
      'A larger plan has a larger minute. The limit of a key is changed beside the key.',
    ],
    at: { path: '/billing/upgrade', name: 'Larger plans' },
    example: { retryAfterSeconds: 4, words: { limit: 20, plan: 'Free', seconds: 4 } },
  },
  too_many_fusions: {
    why: 'One deliberated answer asks many models, so the plan says how many of them an account may have under way at once.',
    mend: [
      'Wait until one has ended, then send the same request again. `Retry-After` says when to try.',
      'A larger plan has more at once. `svc-router/frontier` has no such limit.',
    ],
    at: { path: '/pricing', name: 'Plans and limits' },
    example: { retryAfterSeconds: 5, words: { limit: 2, plan: 'Pro', seconds: 5 } },
  },
  no_provider_connected: {
    why: 'Requests run on provider credentials of the account itself, and none is connected that could serve this profile.',
    mend: [
      'Connect a provider: its name, a model, and your API key there. It is sealed at once and used for your account alone.',
      'Test it with the button beside it, then send the request again.',
    ],
    at: providers,
    example: { words: { profile: 'svc-router/frontier' } },
  },
  upstream_credentials_rejected: {
    why: 'Every provider that could have answered refused the credential that the account has there. Your svc-router key is fine.',
    mend: [
      'Find the provider whose test fails, remove it and connect it again with a credential that works.',
      'A credential that was refused is left alone for a minute, then tried again.',
    ],
    at: providers,
    example: { retryCount: 2 },
  },
  upstream_misconfigured: {
    why: 'Every provider that could have answered said that it does not know the model, or that nothing is served at the address. The name of a model or a base URL is wrong.',
    mend: [
      'Test your providers and correct the name of the model or the base URL.',
      'Where the operator of the service set the provider up, tell them: their log names it.',
    ],
    at: providers,
    example: { retryCount: 1 },
  },
  '1010': {
    why: 'The request did not say what sent it: it had no User-Agent, or a placeholder for one, or that of a scanner. A gate before the API refuses such requests, whatever key they have.',
    mend: [
      'Send a `User-Agent` that says what your program is, such as `my-app/1.0 (me@example.com)`.',
      'SDKs, agents, and the HTTP libraries of all common languages do so by themselves.',
    ],
    at: { path: '/docs/clients', name: 'Clients' },
    example: { param: 'user-agent', words: { problem: 'No User-Agent was sent' } },
  },
} as const satisfies Readonly<Record<string, ErrorHelp>>

import type { ErrorHelp } from './error-help-entry.ts'

const keys = { path: '/account/keys', name: 'Your keys' } as const
const providers = { path: '/account/upstreams', name: 'Your providers' } as const
const budgets = { path: '/account/budgets', name: 'See the budgets' } as const
const upgrade = { path: '/billing/upgrade', name: 'Upgrade' } as const

/** Errors about keys, plans, and providers. */
export const accessHelp = {
  key_missing: {
    why: 'The request had no `Authorization` header, or the header had no key. Often the environment variable for the key is not set in the shell or service that runs your program.',
    fix: [
      'Get a key. All you need is an email address to which we can send a code.',
      'Set the environment variable that your client reads, such as `SVC_ROUTER_API_KEY`, where your program starts.',
      'Send the request again with `Authorization: Bearer sk_svc_…`. Anthropic clients may send the key as `x-api-key`.',
    ],
    at: { path: '/account/setup', name: 'Get a key' },
    example: {},
  },
  key_malformed: {
    why: 'The value is not one of our keys: it has the wrong format, or its checksum (the last six characters) does not match. We check this before looking anything up, so a mistyped key is reported immediately. OpenAI’s API calls this error `invalid_api_key`.',
    fix: [
      'Check that the key starts with `sk_svc_` and has 45 characters, without spaces or quotes around it.',
      'If the message names another provider, you have mixed up two services’ keys. Send that provider’s key to the provider, and ours here.',
      'If part of the key is lost, create a new key. A key is shown only when you create it.',
    ],
    at: keys,
    example: { words: { reason: 'The key is incomplete or mistyped: its checksum is wrong.' } },
  },
  key_inactive: {
    why: 'The key has the right format but is not active: this service did not create it, or its account is suspended. OpenAI’s API calls this error `invalid_api_key`.',
    fix: [
      'Check that the base URL belongs to the service that created the key.',
      'If your [account page](/account) says that the account is suspended, [contact support](/support). New keys do not help.',
      'Otherwise, create a new key and replace the old one.',
    ],
    at: keys,
    example: {},
  },
  key_revoked: {
    why: 'Someone with access to the account, or an operator, revoked or rotated this key, or it was found in public and revoked to protect the account. After a rotation, the old key stops working at the end of the time that was chosen for it. Revoking is permanent.',
    fix: [
      'Create a new key and replace the revoked one.',
      'If you are not signed in, [verify the account’s email address](/account/recover) to get a new key.',
      'If nobody on your team revoked or rotated it, also check the account’s other keys and signed-in browsers.',
    ],
    at: keys,
    example: {},
  },
  auth_unavailable: {
    why: 'The key database did not respond, so we could not check your key, or the account’s plan no longer exists. We return 401 only when we are certain that a key is not valid.',
    fix: [
      'Send the same request again after a second. The failed request was not counted.',
      'If the error persists, open your [account page](/account). If it says that your plan no longer exists, [choose another one](/billing/upgrade).',
      'Otherwise, check the status page.',
    ],
    at: { path: '/status', name: 'Status' },
    example: { retryAfterSeconds: 1 },
  },
  plan_required: {
    why: 'The profile or tool is premium, and the account’s plan does not include it. The request was not sent to any provider, and it was not counted.',
    fix: [
      'Use `svc-router/frontier` instead, or remove the tool.',
      'Or upgrade. Your key stays the same, and works with the profile or tool as soon as your account is on the new plan.',
    ],
    at: upgrade,
    example: { words: { what: 'svc-router/fusion', plan: 'Free' } },
  },
  key_profile_not_allowed: {
    why: 'The key is limited to certain profiles, and this is not one of them. To use the tool `svc-router:fusion` with any profile, the key must also allow the profile `svc-router/fusion`. The request was not sent to any provider, and it was not counted.',
    fix: [
      'Use one of the profiles named in the message. With this key, `GET /v1/models` lists only those. If the message names the tool `svc-router:fusion`, remove it.',
      'Or allow the profile under “Limits” next to the key (for the tool, `svc-router/fusion`). The change applies within a second, and the key stays the same.',
    ],
    at: keys,
    example: { param: 'model', words: { what: 'svc-router/fusion', profiles: 'svc-router/frontier' } },
  },
  key_address_not_allowed: {
    why: 'The key is valid, but it is limited to certain IP addresses, and the request came from a different one. The request was not counted, and nothing about the account was revealed to that address.',
    fix: [
      'The message gives the address that the request came from. On a company network or in a cloud, it often differs from your machine’s own address.',
      'If the address is yours, allow it under “Limits” next to the key. The change applies within a second.',
      'If it is not, someone else has your key. Rotate the key, and choose to revoke the old one immediately.',
    ],
    at: keys,
    example: { words: { address: '203.0.113.7' } },
  },
  insufficient_quota: {
    why: 'What is left of the account’s monthly quota cannot cover this request. The quota resets at the start of the next month (UTC); `resets_at` and `X-Quota-Reset` give that time as a Unix timestamp in seconds. Additional keys do not help, because all keys of an account share its quota.',
    fix: [
      'Upgrade. The larger quota applies as soon as your account is on the new plan. Requests that you already made this month count toward it.',
      'If some of the quota is left, use a profile that counts as fewer requests (see [Models](/models)).',
      'Or wait for the next month. Retrying before then will not succeed.',
      'If your account is on the largest plan, [contact support](/support).',
    ],
    at: upgrade,
    example: {
      resetsAt: 1_796_083_200,
      words: { used: 500, limit: 500, plan: 'Free', resetsOn: 'Dec 1 at 00:00 UTC' },
    },
  },
  budget_exceeded: {
    why: 'A budget for the account, the key, or the profile cannot cover this request. Before we send a request, we reserve its highest possible cost in the budget: the whole input and as much output as the output limit allows, at the highest prices among the backends that may answer. This reservation is a hold. If the request sets no output limit, we set the highest one that the budget can cover. We lower the limit of a Messages request in the same way. We never lower a limit below 1,024 tokens: we reject the request instead. When the request ends, we charge its cost and release the rest. If a provider received the request but its answer did not begin, the cost is unknown, and we charge up to the highest possible one. In the error, `budget` shows which budget it is and how much of it is spent and held, and `resets_at` gives the time when more becomes available.',
    fix: [
      'Raise the budget: open Budgets and choose “Change the limit” next to it. The change applies within a second. If the operator set it, ask them to raise it.',
      'Or lower the highest possible cost: send a shorter request, or one with a lower output limit. If this cost is more than the whole limit, waiting does not help.',
      'Or wait until `resets_at`. Before then, the same request succeeds only if requests that are running now release enough of the budget.',
    ],
    at: budgets,
    example: {
      budget: {
        scope: 'account',
        subject: '',
        unit: 'usd',
        window: 'month',
        rolling: false,
        limit: 20_000_000_000,
        setBy: 'account',
        spent: 19_940_000_000,
        held: 0,
        resetsAtMs: 1_796_083_200_000,
      },
      words: {
        budget: 'The monthly budget for this account',
        left: '0.06',
        limit: '20.00 USD',
        need: '0.14 USD',
        wayOut: 'Wait until Dec 1 at 00:00 UTC',
        raise: 'raise the budget',
      },
    },
  },
  budget_held: {
    why: 'The rest of a budget is on hold for requests that are still running. The hold for a request is its highest possible cost. Most requests cost much less, so part of the budget becomes available soon.',
    fix: [
      'Wait for the number of seconds in `Retry-After`, then retry. Most clients do this automatically.',
      'Send fewer requests at once, or requests with a lower output limit.',
    ],
    at: budgets,
    example: {
      retryAfterSeconds: 8,
      budget: {
        scope: 'account',
        subject: '',
        unit: 'usd',
        window: 'day',
        rolling: false,
        limit: 5_000_000_000,
        setBy: 'account',
        spent: 1_200_000_000,
        held: 3_700_000_000,
        resetsAtMs: 1_796_083_200_000,
      },
      words: {
        budget: 'The daily budget for this account',
        spent: '1.20 USD',
        limit: '5.00 USD',
        held: '3.70 USD',
        need: '0.35 USD',
        seconds: 8,
      },
    },
  },
  budget_price_unknown: {
    why: 'A budget in US dollars applies to this request, but none of the profile’s backends has a known price. We cannot limit their cost, so we do not send them the request.',
    fix: [
      'Use a profile with backends whose prices are known, or a budget in tokens.',
      'Or ask the operator to set the price of a backend (`usd_per_million`).',
    ],
    at: budgets,
    example: { words: { budget: 'The monthly budget for this account', profile: 'svc-router/frontier' } },
  },
  rate_limit_exceeded: {
    why: 'A per-minute limit was reached. It is one of these: the plan’s limit, the key’s own limit, the limit for requests that do not count toward the quota (such as listing models), the limit for missing or rejected keys from one address, or the limit for bytes sent in rejected requests. The message says which one. The plan’s limit uses a sliding 60-second window, not clock minutes.',
    fix: [
      'If the message mentions missing or rejected keys, send a valid key. Waiting alone does not help.',
      'Wait for the number of seconds in `Retry-After`, then retry.',
      'Most clients do this automatically. In your own program, send requests more slowly: `X-RateLimit-Remaining` says how many requests are left.',
      'A larger plan has a higher limit. If the key’s own limit was reached, change it under “Limits” next to the key.',
    ],
    at: { path: '/billing/upgrade', name: 'Larger plans' },
    example: { retryAfterSeconds: 4, words: { limit: '20 requests', scope: 'on the Free plan', seconds: 4 } },
  },
  too_many_fusions: {
    why: 'A fusion request calls several models, so each plan limits how many of these requests an account can run at once.',
    fix: [
      'Wait until one finishes, then send the same request again. `Retry-After` says how long to wait.',
      'A larger plan allows more at once. `svc-router/frontier` has no such limit.',
    ],
    at: { path: '/pricing', name: 'Plans and limits' },
    example: { retryAfterSeconds: 10, words: { limit: 8, plan: 'Pro', seconds: 10 } },
  },
  no_provider_connected: {
    why: 'No provider can serve this profile for your account. Providers that you connect serve `svc-router/frontier`, and `svc-router/fusion` unless the operator chose its backends.',
    fix: [
      'For these profiles, connect a provider: choose it, name a model, and enter your API key for it. We test it, encrypt the key, and use it only for your account.',
      'If you have no provider of your own, [request managed access](/account/managed-access). For any other profile, request managed access, [ask the operator](/support) to add a backend, or use `svc-router/frontier`.',
      'Send the request again.',
    ],
    at: providers,
    example: { action: 'providersUrl', words: { profile: 'svc-router/frontier', next: 'Connect one' } },
  },
  upstream_credentials_rejected: {
    why: 'Every provider that could have answered rejected the credential that we sent to it, or reported that its credit is used up, for this request or shortly before. Your svc-router key is valid.',
    fix: [
      'Find the provider whose test fails. If its credit or quota is used up, add credit at the provider. Otherwise, remove it, and connect it again with a working credential.',
      'If the provider now accepts the credential, wait up to 25 seconds, then send the request again.',
      'If the operator of the service configured the provider, send them the request ID through [support](/support).',
    ],
    at: providers,
    example: { retryCount: 2 },
  },
  upstream_misconfigured: {
    why: 'Every provider that could have answered reported that the model does not exist or that there is nothing at the URL. Probably a model name or base URL is wrong.',
    fix: [
      'Find the provider whose test fails, remove it, and connect it again with the correct model name and base URL.',
      'If the operator of the service configured the provider, send them the request ID through [support](/support).',
    ],
    at: providers,
    example: { retryCount: 1 },
  },
  '1010': {
    why: 'The request did not identify the program that sent it: the User-Agent was missing, a placeholder, an incomplete browser User-Agent, or that of a scanner. Such requests are rejected before the key is checked.',
    fix: [
      'Send a `User-Agent` that identifies your program, such as `my-app/1.0 (me@example.com)`.',
      'SDKs, agents, and common HTTP libraries send one by default. If you use one, check that neither your configuration nor a proxy changes it.',
    ],
    at: { path: '/docs/clients', name: 'Clients' },
    example: { param: 'user-agent', words: { problem: 'No User-Agent was sent' } },
  },
} as const satisfies Readonly<Record<string, ErrorHelp>>

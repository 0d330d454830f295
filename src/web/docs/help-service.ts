import type { ErrorHelp } from './error-help-entry.ts'

const status = { path: '/status', name: 'Status' } as const
const again = 'Send the same request again. Most clients do this automatically.'

/** Errors on our side or a provider's. Only requests that were answered are counted. */
export const serviceHelp = {
  server_is_overloaded: {
    why: 'We asked up to three backends of the profile, and none could answer. We skip backends that are failing, slow, or rate limited, whose credential was rejected, or that the operator disabled. `error.attempts` lists the outcome of each attempt, and `error.passed_by` lists the backends that were skipped, with reasons.',
    fix: [
      'Wait for the number of seconds in `Retry-After`, then send the same request again.',
      'If you have only one provider, connect a second one as a fallback.',
      'If the error persists, check the status page.',
    ],
    at: status,
    example: {
      retryAfterSeconds: 5,
      retryCount: 1,
      attempts: [
        { backend: 'openai-main', outcome: 'server_error' },
        { backend: 'anthropic-main', outcome: 'rate_limited' },
      ],
      passedBy: [{ backend: 'local-vllm', reason: 'drained' }],
      words: { profile: 'svc-router/frontier', seconds: 5 },
    },
  },
  record_unavailable: {
    why: 'We record usage before we send an answer, and this request could not be recorded.',
    fix: [again],
    at: status,
    example: { retryAfterSeconds: 1 },
  },
  store_unavailable: {
    why: 'The database did not respond, or a running response that you deleted did not stop in time.',
    fix: [again],
    at: status,
    example: { retryAfterSeconds: 1 },
  },
  server_busy: {
    why: 'The server is handling as many requests as it can, or your account or address has reached its share of them.',
    fix: [again, 'If your account sends many requests at once, send fewer.'],
    at: status,
    example: { retryAfterSeconds: 1 },
  },
  load_shed: {
    why: 'The server has more work than it can do. Until it catches up, it rejects retries first, then requests that force the fusion tool, then some or all requests from accounts without a premium plan, so that it can answer the other requests in time. Meanwhile, a single model answers other fusion requests. Your request was not counted.',
    fix: [
      'Wait for the number of seconds in `Retry-After`, then send the same request again. Most clients do this automatically.',
      'If your request forces the fusion tool, let the model decide instead: a single model then answers.',
    ],
    at: status,
    example: { retryAfterSeconds: 2, words: { what: 'retries', seconds: 2 } },
  },
  restarting: {
    why: 'The server is restarting: it accepts no new requests, and ends requests in progress that take too long. Or it stopped before it could finish a request with an `Idempotency-Key`.',
    fix: [
      'If no part of the answer arrived, send the same request again. Most clients do this automatically.',
      'Otherwise, discard the partial answer and send the request again, with a new `Idempotency-Key` if it had one.',
    ],
    at: status,
    example: { retryAfterSeconds: 1 },
  },
  upstream_timeout: {
    why: 'The answer was not complete before the request’s deadline: the timeout that your client sent, or otherwise the longest total timeout of the backends. The deadline also ends a stream that has begun. A fusion also gets this error if all its models time out. Reasoning models can take minutes.',
    fix: [
      'Use `"stream": true`. A stream can take longer than an answer that is not streamed, but it must also end before the deadline.',
      'Set a longer `timeout` in your SDK, at most an hour. OpenAI’s SDK for JavaScript and Anthropic’s SDKs send it with the request (10 minutes by default), and we stop shortly before it expires. With OpenAI’s SDK for Python, send it yourself, in seconds: `extra_headers={"X-Stainless-Timeout": "1800"}`.',
      'If your client sends no timeout, or the request has an `Idempotency-Key` or runs in the background, ask the operator of the service to raise the `total` timeout of the backends. For your own provider, remove it and connect it again with a longer total timeout.',
    ],
    at: status,
    example: { retryCount: 1, words: { profile: 'svc-router/frontier', seconds: 600 } },
  },
  upstream_broken: {
    why: 'A provider’s response was interrupted, and no other provider continued it.',
    fix: [
      'Discard the partial answer and send the request again, with a new `Idempotency-Key` if it had one.',
      'To let another provider continue an interrupted stream, set [`rescue` in `routing`](/docs/routing).',
    ],
    at: status,
    example: { upstream: 'openai-main' },
  },
  answer_interrupted: {
    why: 'The server that generated the response stopped, every client that was receiving the response was disconnected for too long, or the response is no longer stored, for example because it is too large. Unless it runs in the background, a stream without an `Idempotency-Key` is not stored, so it cannot be continued with `Last-Event-ID`. The request is counted once. If part of the response is stored, a retry with the same `Idempotency-Key` gets the same partial answer and this error, because generating a second answer would count and cost again.',
    fix: ['Discard the partial answer, and send the request with a new `Idempotency-Key`.'],
    at: status,
    example: {},
  },
  internal_error: {
    why: 'This is a bug on our side. We logged it with the request ID, without any of the request’s content.',
    fix: ['Try again.', 'If the error persists, send us the request ID, but none of the request’s content.'],
    at: { path: '/support', name: 'Support' },
    example: {},
  },
} as const satisfies Readonly<Record<string, ErrorHelp>>

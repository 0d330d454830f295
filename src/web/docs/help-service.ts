import type { ErrorHelp } from './error-help.ts'

const status = { path: '/status', name: 'Status' } as const
const again = 'Send the same request again. Most clients do it by themselves.'

/** What went wrong on our side or on a provider's. Only what was answered is counted. */
export const serviceHelp = {
  server_is_overloaded: {
    why: 'Every provider behind the profile failed just now, is left alone for a while because it failed before, or was taken out of use by the operator. `error.attempts` says how each that was asked did, and `error.passed_by` why others were not, in one word each.',
    mend: [
      'Wait as many seconds as `Retry-After` says, then send the same request again.',
      'With one provider only there is nothing to fall back to: connect a second.',
      'If it stays, look at the status page.',
    ],
    at: status,
    example: {
      retryAfterSeconds: 5,
      retryCount: 2,
      attempts: [
        { backend: 'openai-main', outcome: 'server_error' },
        { backend: 'anthropic-main', outcome: 'rate_limited' },
      ],
      passedBy: [{ backend: 'local-vllm', reason: 'drained' }],
      words: { profile: 'svc-router/frontier', seconds: 5 },
    },
  },
  record_unavailable: {
    why: 'No answer leaves before its count is safely on disk, and that could not be done just now.',
    mend: [again],
    at: status,
    example: { retryAfterSeconds: 1 },
  },
  store_unavailable: {
    why: 'The database did not answer.',
    mend: [again],
    at: status,
    example: { retryAfterSeconds: 1 },
  },
  server_busy: {
    why: 'The server has as many requests under way as it can hold, or one account or address has its share of them.',
    mend: [again],
    at: status,
    example: { retryAfterSeconds: 1 },
  },
  restarting: {
    why: 'The server was asked to stop and waited for the answers under way; this one took longer than it may.',
    mend: [again],
    at: status,
    example: { retryAfterSeconds: 1 },
  },
  upstream_timeout: {
    why: 'No provider answered in the time that the request may take. Reasoning models can think for minutes.',
    mend: [
      'Ask with `"stream": true`: then only silence ends a request, not its length.',
      'Or allow more time: the SDKs tell us their `timeout`, and we keep to it.',
    ],
    at: status,
    example: { retryCount: 1, words: { profile: 'svc-router/frontier', seconds: 600 } },
  },
  upstream_broken: {
    why: 'The provider’s answer ended in the middle, after its beginning had been passed on. What was passed on cannot be taken back, so no other provider was asked; the request is counted.',
    mend: ['Throw away what arrived, and send the request again.'],
    at: status,
    example: { upstream: 'openai-main' },
  },
  internal_error: {
    why: 'That is a fault of ours. It was noted with the id of your request, and without anything of its text.',
    mend: ['Try once more.', 'If it stays, tell us the id of the request, and nothing of its content.'],
    at: { path: '/support', name: 'Support' },
    example: {},
  },
} as const satisfies Readonly<Record<string, ErrorHelp>>

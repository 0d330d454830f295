import type { AttemptOutcome, UpstreamTest } from './upstream.ts'

/** The result of a test request to a provider, and the next step. */
interface TestWords {
  readonly what: string
  readonly next: string
}

const words: Readonly<Record<AttemptOutcome, TestWords>> = {
  answered: { what: 'The provider answered.', next: '' },
  rejected_credentials: {
    what: 'The provider rejected the credential, or your credit there is used up.',
    next: 'Check that the key is complete and active, that it belongs to this provider, and that you have credit there.',
  },
  rejected_content: {
    what: 'The provider rejected the test request.',
    next: 'Check the model name and the format.',
  },
  context_too_long: {
    what: 'The provider reports that even the test request is too long for this model.',
    next: 'Check the model name.',
  },
  not_capable: {
    what: 'The provider does not support something in the test request.',
    next: 'Check the model name and the format.',
  },
  rate_limited: {
    what: 'The provider is not accepting more requests right now.',
    next: 'Check your limits and credit at the provider, or try again later.',
  },
  server_error: { what: 'The provider failed.', next: 'Check the URL and the model name, or try again later.' },
  unreachable: {
    what: 'The provider cannot be reached.',
    next: 'Check the URL, and that the server is running.',
  },
  reset: { what: 'The provider closed the connection.', next: 'Check the URL: the scheme, the host, and the port.' },
  timeout: {
    what: 'The provider did not answer in time.',
    next: 'Check that the server is running. If the model takes a long time to load, load it first.',
  },
  broken: {
    what: 'The answer is not in the expected format.',
    next: 'Check the URL and the format.',
  },
  not_found: {
    what: 'The provider does not have this model, or there is no API at this URL.',
    next: 'Check the model name and the URL.',
  },
  not_sent: { what: 'The test request could not be sent.', next: 'See the log of this service, and try again.' },
  cancelled: { what: 'The test was canceled.', next: 'Try again.' },
}

/** Describes the result of a test. */
export function describeUpstreamTest({ outcome }: UpstreamTest): TestWords {
  return words[outcome]
}

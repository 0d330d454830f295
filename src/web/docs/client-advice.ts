/** What each client shows for one kind of error, observed with the versions listed in docs/clients.md. */
type Kind = 'stops' | 'notFound' | 'minute' | 'fault' | 'later'

const sdk =
  'throws immediately, with our message in `error.message`, the code in `error.code`, and the request ID in `error.requestID`'
const table: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
  stops: {
    'OpenAI SDK': sdk,
    Codex: 'with our configuration, sends the request three times, then prints our message and the request ID',
    'Claude Code': 'prints our message after one request; for 401 and 403, after “Failed to authenticate.”',
    opencode: 'prints our message',
  },
  notFound: {
    'OpenAI SDK': sdk,
    Codex: 'stops and prints the raw response body',
    'Claude Code': 'stops with its own message; check the model name, and that the base URL does not include `/v1`',
    opencode: 'prints our message; for a model missing from its configuration, only “Unexpected server error”',
  },
  minute: {
    'OpenAI SDK': 'retries twice, waiting as `Retry-After` says, then throws with our message',
    Codex: 'waits and retries; finally prints “exceeded retry limit” with the request ID, without our message',
    'Claude Code': 'waits and retries, then prints our message',
    opencode: 'waits silently until the request succeeds',
  },
  fault: {
    'OpenAI SDK': sdk,
    Codex: 'stops and prints the raw response body',
    'Claude Code': 'stops and prints our message',
    opencode: 'stops and prints our message',
  },
  later: {
    'OpenAI SDK': 'retries twice, waiting as `Retry-After` says, then throws with our message',
    Codex: 'retries as often as its configuration says, then prints our message',
    'Claude Code': 'retries, then prints our message',
    opencode: 'retries several times before it reports a failure',
  },
}

/** One row per client: its name, and what it shows for an error with this status. */
export function clientWords(status: number): readonly (readonly [client: string, words: string])[] {
  return Object.entries(table[kindOf(status)])
}

function kindOf(status: number): Kind {
  if (status === 429) return 'minute'
  if (status === 404) return 'notFound'
  if ([401, 402, 403].includes(status)) return 'stops'
  return status >= 500 || status === 408 ? 'later' : 'fault'
}

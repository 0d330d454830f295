/** What people read in their client for answers of one kind: seen with the versions that docs/clients.md names. */
type Kind = 'stops' | 'notFound' | 'minute' | 'fault' | 'later'

const sdk = 'throws at once: `error.message` is our sentence, `error.code` the code, `error.requestID` the request id'
const table: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
  stops: {
    'OpenAI SDK': sdk,
    Codex: 'asks three times with our configuration, then prints our sentence and the request id',
    'Claude Code': 'prints our sentence after one request; for 401 and 403 behind “Failed to authenticate.”',
    opencode: 'prints our sentence',
  },
  notFound: {
    'OpenAI SDK': sdk,
    Codex: 'stops, and prints the body as it came',
    'Claude Code': 'stops with a sentence of its own: check the model’s name, and that the address has no `/v1`',
    opencode: 'prints our sentence; for a model that its configuration does not have, only “Unexpected server error”',
  },
  minute: {
    'OpenAI SDK': 'waits as `Retry-After` says and asks again, twice; then throws with our sentence',
    Codex:
      'waits and asks again; at last it says “exceeded retry limit” with the request id, and keeps our sentence to itself',
    'Claude Code': 'waits and asks again, then prints our sentence',
    opencode: 'waits without a word until it is answered',
  },
  fault: {
    'OpenAI SDK': sdk,
    Codex: 'stops, and prints the body as it came',
    'Claude Code': 'stops, and prints our sentence',
    opencode: 'stops, and prints our sentence',
  },
  later: {
    'OpenAI SDK': 'asks again, twice, and waits as `Retry-After` says; then throws with our sentence',
    Codex: 'asks again as often as its configuration says, then prints our sentence',
    'Claude Code': 'asks again, then prints our sentence',
    opencode: 'asks again several times before it says that it failed',
  },
}

/** Clients and what each shows of an error with this status, as rows. */
export function clientWords(status: number): readonly (readonly [client: string, words: string])[] {
  return Object.entries(table[kindOf(status)])
}

function kindOf(status: number): Kind {
  if (status === 429) return 'minute'
  if (status === 404) return 'notFound'
  if ([401, 402, 403].includes(status)) return 'stops'
  return status >= 500 || status === 408 ? 'later' : 'fault'
}

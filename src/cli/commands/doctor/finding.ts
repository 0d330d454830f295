/** One problem and its fix: a sentence, and the next command or line. */
export interface Finding {
  /** Stable identifier for scripts. */
  readonly code: string
  readonly what: string
  readonly fix: string
  /** Whether all requests fail until this is fixed. Otherwise requests may only sometimes fail. */
  readonly blocks: boolean
}

/** What is needed to phrase findings. */
export interface Wording {
  /** Formats a svc-router command that can be pasted. */
  readonly command: (text: string) => string
  /** The command that sets the key's variable. */
  readonly keyCommand: string
  /** Whether the service runs on this machine. */
  readonly isOwn: boolean
  /** Whether the User-Agent was given with --user-agent. */
  readonly isNamedUserAgent: boolean
}

/** One thing that is wrong, and what to do about it: a sentence and the next command or line. */
export interface Finding {
  /** Stable, for scripts. */
  readonly code: string
  readonly what: string
  readonly fix: string
  /** Whether requests cannot work before it is mended; others only may fail. */
  readonly blocks: boolean
}

/** What findings are told with. */
export interface Telling {
  /** A command of ours that can be pasted. */
  readonly command: (text: string) => string
  /** The command that sets the key's variable. */
  readonly keyCommand: string
  /** Whether the service is the one of this machine. */
  readonly isOwn: boolean
  /** Whether the User-Agent is one that was named, and not our own. */
  readonly isNamedUserAgent: boolean
}

import { ServiceError } from '../domain/errors.ts'
import type { EdgeReason, EventLog } from '../domain/events.ts'
import { minuteMs } from '../runtime/minute-log.ts'
import { WindowCounts } from '../runtime/window-counts.ts'

/** Values that do not identify the sender. Names of HTTP libraries and tools pass (contract 2.29). */
const placeholder = /^(?:-|none|null|undefined|unknown|user-agent|n\/a|test)$/i
/** Vulnerability scanners that identify themselves. */
const scanner = /^(?:masscan|zgrab|nmap|nikto|sqlmap|nuclei|wpscan|gobuster|dirbuster)\b/i
const bareBrowser = /^mozilla\/\d\.\d$/i
/** Only this many characters are checked. */
const maxCharacters = 200
/** How many accepted values are remembered: most requests come from few programs. */
const maxPassed = 256

const problems: Readonly<Record<EdgeReason, string>> = {
  missing: 'No User-Agent was sent',
  bare_browser: 'The User-Agent is an incomplete browser User-Agent',
  placeholder: 'The User-Agent does not identify the client',
  scanner: 'The User-Agent belongs to a scanner',
}

/** Why a User-Agent is blocked; undefined if it is not. */
function edgeReason(userAgent: string | undefined): EdgeReason | undefined {
  const name = (userAgent ?? '').slice(0, maxCharacters).trim()
  if (name === '') return 'missing'
  if (bareBrowser.test(name)) return 'bare_browser'
  if (scanner.test(name)) return 'scanner'
  return placeholder.test(name) || !/[a-z]/i.test(name) ? 'placeholder' : undefined
}

/** Filters requests by User-Agent, and logs why one was blocked. */
export class EdgeGate {
  readonly #log: EventLog
  readonly #nowMs: () => number
  readonly #blocked = new WindowCounts(minuteMs, Object.keys(problems).length)
  readonly #passed = new Set<string>()

  constructor(log: EventLog, nowMs: () => number) {
    this.#log = log
    this.#nowMs = nowMs
  }

  /** @throws ServiceError `1010` */
  pass(userAgent: string | undefined, requestId: string): void {
    if (userAgent !== undefined && this.#passed.has(userAgent)) return
    const reason = edgeReason(userAgent)
    if (reason === undefined) {
      if (this.#passed.size < maxPassed && userAgent!.length <= maxCharacters) this.#passed.add(userAgent!)
      return
    }
    const { count } = this.#blocked.add(reason, this.#nowMs())
    // Anyone can send these, so only the 1st, 2nd, 4th, 8th … of a minute are logged.
    if ((count & (count - 1)) === 0) this.#log({ event: 'edge_blocked', requestId, reason, inMinute: count })
    throw new ServiceError('1010', { param: 'user-agent', words: { problem: problems[reason] } })
  }
}

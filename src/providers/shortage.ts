import { openSync, closeSync } from 'node:fs'

/** What the system says when this process, or this machine, has no descriptors, ports, or memory for one more connection. */
const shortages: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EAGAIN'])

/**
 * The code with which this service, and not the provider, is to blame for a connection that could not be opened; undefined
 * for all other errors. A name look-up without descriptors fails as if the name were unknown, so then one is tried.
 */
export function shortageOf(error: Error): string | undefined {
  if (!hasCode(error)) return undefined
  if (shortages.has(error.code) || isOutOfPorts(error)) return error.code
  return 'syscall' in error && error.syscall === 'getaddrinfo' ? descriptorShortage() : undefined
}

/** With an IPv6 address the same code says that this machine has no IPv6. */
function isOutOfPorts(error: Error & { readonly code: string }): boolean {
  return error.code === 'EADDRNOTAVAIL' && 'address' in error && !String(error.address).includes(':')
}

function descriptorShortage(): string | undefined {
  try {
    closeSync(openSync('/dev/null', 'r'))
    return undefined
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    return typeof code === 'string' && shortages.has(code) ? code : undefined
  }
}

function hasCode(error: Error): error is Error & { readonly code: string } {
  return 'code' in error && typeof error.code === 'string'
}

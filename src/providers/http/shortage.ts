import { openSync, closeSync } from 'node:fs'

/** System error codes that mean this process or machine has no descriptors, ports, or memory left for a connection. */
const shortages: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EAGAIN'])

/**
 * The error code if this service, not the provider, is why a connection failed to open; undefined for all other errors
 * (contract 7.18). A name lookup without descriptors fails like an unknown name, so in that case opening a descriptor
 * is tried.
 */
export function shortageOf(error: Error): string | undefined {
  if (!hasCode(error)) return undefined
  if (shortages.has(error.code) || isOutOfPorts(error)) return error.code
  return 'syscall' in error && error.syscall === 'getaddrinfo' ? descriptorShortage() : undefined
}

/** For an IPv6 address the same code means that this machine has no IPv6. */
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

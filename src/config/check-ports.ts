import { isIPv6 } from 'node:net'
import type { Config } from './config.ts'
import type { Findings } from './findings.ts'

interface Address {
  readonly host: string
  readonly port: number
}

/** Adds a problem for each address that another listener of the service already uses. */
export function checkPorts(
  { listen, appListen, metricsListen }: Pick<Config, 'listen' | 'appListen' | 'metricsListen'>,
  findings: Findings,
): void {
  const used: [name: string, address: Address][] = [['listen', listen]]
  const others: [name: string, address: Address | undefined][] = [
    ['app_listen', appListen],
    ['metrics_listen', metricsListen],
  ]
  for (const [name, address] of others) {
    if (address === undefined) continue
    const taken = used.find(([, one]) => isSame(one, address))
    if (taken !== undefined)
      findings.add(
        [name, 'port'],
        `${name}.port and ${taken[0]}.port are both ${address.port}`,
        'use a different port for each of them',
      )
    used.push([name, address])
  }
}

/** Port 0 is never the same: the system chooses a free one. */
function isSame(one: Address, other: Address): boolean {
  if (one.port === 0 || one.port !== other.port) return false
  return one.host === other.host || includes(one.host, other.host) || includes(other.host, one.host)
}

/** Whether a host stands for all addresses, the other one among them: `::` also for those of IPv4. */
function includes(host: string, other: string): boolean {
  return host === '::' || (host === '0.0.0.0' && !isIPv6(other))
}

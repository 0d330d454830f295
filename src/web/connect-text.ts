import type { Connection } from '../domain/connections.ts'
import { frontierId } from '../domain/profiles.ts'
import { defaultKeyVariable, type Wiring } from '../domain/wiring.ts'
import type { WebParts } from './web-parts.ts'

/** The client configuration for this service. It names the key's environment variable and never contains a key. */
export function wiringOf({ baseUrl, appUrl }: Pick<WebParts, 'baseUrl' | 'appUrl'>): Wiring {
  return {
    baseUrl,
    keyVariable: defaultKeyVariable,
    keyHint: `Get a key: ${appUrl}/account/setup`,
    model: frontierId,
  }
}

/** The command that prints a client's configuration. */
export function connectCommand({ name }: Connection, { baseUrl }: Pick<WebParts, 'baseUrl'>): string {
  return `npx svc-router connect ${name} --url ${baseUrl}`
}

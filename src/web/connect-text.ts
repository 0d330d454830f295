import type { Connection } from '../domain/connections.ts'
import { frontierId } from '../domain/profiles.ts'
import { defaultKeyVariable, type Wiring } from '../domain/wiring.ts'
import type { WebParts } from './web-parts.ts'

/** This service as a client is wired with it. The key is named, never held. */
export function wiringOf({ baseUrl, appUrl }: Pick<WebParts, 'baseUrl' | 'appUrl'>): Wiring {
  return {
    baseUrl,
    keyVariable: defaultKeyVariable,
    keyHint: `Get a key: ${appUrl}/account/setup`,
    model: frontierId,
  }
}

/** The command that prints a client's configuration anywhere. */
export function connectCommand({ name }: Connection, { baseUrl }: Pick<WebParts, 'baseUrl'>): string {
  return `npx svc-router connect ${name} --url ${baseUrl}`
}

import { defaultKeyVariable, type ClientConfig } from '../../domain/client-config.ts'
import type { ClientRecipe } from '../../domain/client-recipes.ts'
import { frontierId } from '../../domain/profiles.ts'
import type { WebDeps } from '../web-deps.ts'

/** The client configuration for this service. It names the key's environment variable and never contains a key. */
export function clientConfigFor({ baseUrl, appUrl }: Pick<WebDeps, 'baseUrl' | 'appUrl'>): ClientConfig {
  return {
    baseUrl,
    keyVariable: defaultKeyVariable,
    keyHint: `Get a key: ${appUrl}/account/setup`,
    model: frontierId,
  }
}

/** The command that prints a client's configuration. */
export function connectCommand({ name }: ClientRecipe, { baseUrl }: Pick<WebDeps, 'baseUrl'>): string {
  return `npx svc-router connect ${name} --url ${baseUrl}`
}

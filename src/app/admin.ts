import { DeclarationError } from '../accounts/declared/change.ts'
import { adminOpenApiDocument } from '../api-docs/admin-openapi.ts'
import { readJsonDeclaration } from '../config/declaration.ts'
import { ConfigError } from '../config/problems.ts'
import type { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import { readVersion } from '../runtime/version.ts'
import type { AdminDeps } from '../web/admin/admin-deps.ts'
import { RateLimiter } from '../web/http/rate-limiter.ts'
import type { Runtime } from './runtime.ts'
import { readDeclared } from './served-settings.ts'
import type { Storage } from './storage.ts'

/** Failed authentications of one address in ten minutes, and requests with one token in a minute (contract 38.13). */
const failuresWindowMs = 10 * 60_000
const failuresPerWindow = 60
const requestsWindowMs = 60_000
const requestsPerWindow = 600

/** What the admin API needs; undefined if the configuration does not turn it on. */
export function openAdmin(
  { config, clock, random }: Runtime,
  { storage: { store }, breakers }: { readonly storage: Pick<Storage, 'store'>; readonly breakers: CircuitBreakers },
): AdminDeps | undefined {
  if (!config.adminApi) return undefined
  const { pepper } = config.secrets
  const parts = { clock, random, pepper }
  return {
    tokens: { ...parts, store, findOperator: (id) => store.operators.findOperator(id) },
    control: { ...parts, store },
    transactions: store.declared,
    configured: config.settings.configured,
    readServed: async () => config.settings.serve(await readDeclared(store)),
    readFile(json) {
      const { declaration, from } = explained(() => readJsonDeclaration('file', json))
      return { declaration, serve: (stored) => explained(() => config.settings.serve(stored, from)) }
    },
    condition: (id) => breakers.condition(id),
    limiters: {
      failures: new RateLimiter(failuresPerWindow, failuresWindowMs, clock),
      requests: new RateLimiter(requestsPerWindow, requestsWindowMs, clock),
    },
    openApi: adminOpenApiDocument({ appUrl: config.appUrl, version: readVersion() }),
  }
}

/** Problems with their paths, as the control plane reports its own. */
function explained<Value>(work: () => Value): Value {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new DeclarationError(
      error.problems.map(({ path, what, fix }) => ({ path: path === undefined ? [] : [path], what, fix })),
    )
  }
}

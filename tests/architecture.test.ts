import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { expect, test } from 'vitest'

/** The allowed imports between layers, and why. Type-only imports count. Each file in `src/` itself is its own layer. */
const layers: Readonly<Record<string, { imports: readonly string[]; packages: readonly string[]; because: string }>> = {
  runtime: {
    imports: [],
    packages: ['node:*'],
    because:
      'it is what every part is given or built from: clocks, randomness, collections; it knows nothing of the service',
  },
  domain: {
    imports: ['runtime'],
    // Of node:net the arithmetic of addresses alone: it opens nothing.
    packages: ['node:crypto', 'node:net', 'node:util', 'node:zlib'],
    because: 'it says what the service is, and must be readable and testable without anything else',
  },
  'api-docs': {
    imports: ['domain', 'runtime'],
    packages: [],
    because: 'it describes the public API as data; the API and the pages read it',
  },
  formats: {
    imports: ['domain', 'runtime'],
    packages: ['node:buffer', 'node:crypto'],
    because: 'translations are pure',
  },
  gateway: {
    imports: ['domain', 'runtime', 'formats'],
    packages: [],
    because: 'the data plane decides over ports that it declares; what serves them is joined in app/',
  },
  accounts: {
    imports: ['domain', 'runtime'],
    packages: [],
    because: 'the control plane decides over ports that it declares',
  },
  providers: {
    imports: ['domain', 'runtime', 'formats', 'gateway/ports.ts'],
    packages: ['node:*', '@smithy/signature-v4', 'google-auth-library'],
    because: 'an adapter: it serves the gateway and knows no other adapter; signing is done by well-kept libraries',
  },
  storage: {
    imports: [
      'domain',
      'runtime',
      'gateway/ports.ts',
      'gateway/cache/session-store.ts',
      'gateway/generations/generation-store.ts',
      'gateway/responses/response-store.ts',
      'gateway/responses/conversation-store.ts',
      'accounts/ports.ts',
      'accounts/admin/admin-ports.ts',
      'accounts/alerts/alert-ports.ts',
      'accounts/backends/backend-ports.ts',
      'accounts/billing/ports.ts',
      'accounts/declared/declared-ports.ts',
      'accounts/operators/operator-ports.ts',
      'accounts/status/status-ports.ts',
      'accounts/support/support-ports.ts',
    ],
    packages: ['kysely', 'pg', 'node:*'],
    because: 'an adapter: it serves both planes and knows no other adapter',
  },
  billing: {
    imports: ['domain', 'runtime', 'accounts/billing/ports.ts'],
    packages: ['stripe', 'node:*'],
    because: 'an adapter: it serves the control plane and knows no other adapter; its library implements the protocol',
  },
  http: {
    imports: ['domain', 'runtime', 'formats', 'gateway', 'api-docs'],
    packages: ['ws', 'node:*'],
    because: 'an adapter: it drives the data plane and no more; ws does the framing of WebSockets, which Node does not',
  },
  metrics: {
    imports: ['domain', 'runtime', 'gateway/ports.ts'],
    packages: ['@prometheus-io/client', 'node:http', 'node:net'],
    because: 'an adapter: it counts what the gateway reports, and is loaded only if metrics are on',
  },
  tracing: {
    imports: ['domain', 'runtime', 'gateway/ports.ts'],
    packages: [
      '@opentelemetry/api',
      '@opentelemetry/core',
      '@opentelemetry/exporter-trace-otlp-http',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-trace',
    ],
    because: 'an adapter: it reports what the gateway did to a collector, and is loaded only if tracing is on',
  },
  mail: {
    imports: ['domain', 'runtime', 'accounts/ports.ts'],
    packages: ['nodemailer'],
    because: 'an adapter: it sends emails and knows nothing of what they are about',
  },
  simulation: {
    imports: ['domain', 'runtime', 'formats/fields.ts', 'accounts/ports.ts'],
    packages: ['node:*'],
    because: 'it simulates other companies over their protocols, so it knows no adapter that connects to it',
  },
  web: {
    imports: ['domain', 'runtime', 'accounts', 'api-docs'],
    packages: ['hono', 'hono/html', '@hono/node-server', '@simplewebauthn/server', 'node:*'],
    because: 'an adapter: pages drive the control plane over what app/ gives them, and know no other adapter',
  },
  config: {
    imports: [
      'domain',
      'runtime',
      'formats/format.ts',
      'gateway/ports.ts',
      'providers/registry.ts',
      'providers/cloud-location.ts',
      'providers/timeouts.ts',
    ],
    packages: ['yaml', 'zod', 'node:*'],
    because: 'settings are checked against the tables that give them meaning',
  },
  eval: {
    imports: ['domain', 'runtime', 'gateway'],
    packages: ['node:crypto'],
    because: 'it measures the engine of fusion by running that very engine; its models are given by main.ts',
  },
  cli: {
    imports: [
      'domain',
      'runtime',
      'accounts',
      'config',
      'eval',
      'providers/registry.ts',
      'providers/cloud-location.ts',
    ],
    packages: ['node:*'],
    because: 'commands drive the control plane; the parts that serve it are given by main.ts',
  },
  app: {
    imports: [
      'runtime',
      'domain',
      'api-docs',
      'formats',
      'gateway',
      'accounts',
      'providers',
      'storage',
      'billing',
      'http',
      'metrics',
      'mail',
      'simulation',
      'tracing',
      'web',
      'config',
    ],
    packages: ['node:*'],
    because: 'the composition root joins every part of the service; commands and evaluations are no part of it',
  },
}
/** The program, and what joins `eval` with models and `demo` with a service: they may import everything. */
const roots = ['main.ts', 'eval-models.ts', 'demo-service.ts']
const free = ['../package.json', '../docs/']

const source = join(import.meta.dirname, '..', 'src')
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
const importOf =
  /^(?:import|export)\b[^'"]*?from\s+'([^']+)'|\bimport\(\s*'([^']+)'|\bnew URL\(\s*'([^']+)'|^import\s+'([^']+)'/gm

function importsOf(file: string): string[] {
  const text = readFileSync(join(source, file), 'utf8')
  return Array.from(text.matchAll(importOf), (match) => (match[1] ?? match[2] ?? match[3] ?? match[4])!)
}

/** What is wrong with one import, or undefined. */
function breach(file: string, imported: string): string | undefined {
  const [layer = ''] = file.split('/')
  const rule = layers[layer]
  if (rule === undefined) return undefined
  if (!imported.startsWith('.')) {
    const isAllowed =
      rule.packages.includes(imported) || (rule.packages.includes('node:*') && imported.startsWith('node:'))
    return isAllowed
      ? undefined
      : `${file} imports ${imported}: ${layer} may use ${rule.packages.join(', ') || 'no package'}, because ${rule.because}`
  }
  const target = normalize(join(dirname(file), imported))
  const [targetLayer = ''] = target.split('/')
  const isAllowed =
    targetLayer === layer ||
    rule.imports.includes(targetLayer) ||
    rule.imports.includes(target) ||
    free.includes(target)
  return isAllowed
    ? undefined
    : `${file} imports ${target}: ${layer} may import ${rule.imports.join(', ') || 'nothing else'}, because ${rule.because}`
}

test('every folder imports only what its row allows', () => {
  const breaches = files.flatMap((file) => importsOf(file).map((imported) => breach(file, imported))).filter(Boolean)
  expect(breaches).toEqual([])
})

test('every folder in src has a row, and every file outside a folder is a root', () => {
  for (const file of files) {
    const [layer = ''] = file.split('/')
    expect(layer in layers || roots.includes(layer) || free.includes(layer), `${file} has no place`).toBe(true)
  }
})

test('the import rules reject forbidden imports', () => {
  expect(breach('domain/x.ts', '../gateway/ports.ts')).toContain('runtime')
  expect(breach('storage/x.ts', '../gateway/gateway.ts')).toContain('gateway/ports.ts')
  expect(breach('http/x.ts', '../storage/store.ts')).toContain('may import')
  expect(breach('providers/x.ts', '../storage/store.ts')).toContain('knows no other adapter')
  expect(breach('gateway/x.ts', 'undici')).toContain('no package')
  expect(breach('gateway/routing/x.ts', '../ports.ts')).toBeUndefined()
})

test('a source file has at most 400 lines, and no folder or file has a name that says nothing', () => {
  for (const file of files) {
    const lines = readFileSync(join(source, file), 'utf8').split('\n').length
    expect(lines, file).toBeLessThanOrEqual(401)
    expect(relative('.', file)).not.toMatch(/(^|\/)(utils?|helpers?|common|services?|managers?|types)(\/|\.ts$)/)
  }
})

test('no code branches on the name of a vendor', () => {
  const vendors =
    /(?:===|!==|case)\s*['"](openai|azure-openai|openrouter|groq|together|mistral|deepseek|xai|gemini|vertex|bedrock|ollama|vllm|anthropic)['"]/
  for (const file of files) {
    const text = readFileSync(join(source, file), 'utf8')
    expect(vendors.exec(text)?.[0], file).toBeUndefined()
  }
})

test('every path in ARCHITECTURE.md exists, in full or below src', () => {
  const text = readFileSync('ARCHITECTURE.md', 'utf8')
  const paths = Array.from(text.matchAll(/`([\w./-]+(?:\.(?:ts|mjs|js|md|css|json|yaml)|\/))`/g), ([, path]) => path!)
  expect(paths.length).toBeGreaterThan(100)
  expect(paths.filter((path) => !existsSync(path) && !existsSync(join(source, path)))).toEqual([])
})

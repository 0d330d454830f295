import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { deploy, hasTool, type Ran, run, schemas } from './tools.ts'

const chart = join(deploy, 'helm', 'svc-router')
/** The oldest version that Chart.yaml accepts, and the newest one. */
const kubernetesVersions = ['1.30.0', '1.37.0']

const settings = 'mode: production\napp_url: https://app.example.com\nbase_url: https://api.example.com/v1\n'
let folder: string
let config: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-chart-'))
  config = join(folder, 'svc-router.yaml')
  writeFileSync(config, settings)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const required = () => ['--set', 'secret=my-secrets', '--set-file', `config=${config}`]
const render = (...values: readonly string[]): Ran => run('helm', ['template', 'my-release', chart, ...values])
const everything = [
  '--set',
  'metrics.enabled=true,ingress.enabled=true,ingress.className=any,ingress.tlsSecret=my-certificate',
]

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: unknown
}
const manifests = (output: string): Manifest[] =>
  parseAllDocuments(output).map((document) => document.toJS() as Manifest)
const only = (all: readonly Manifest[], kind: string): Manifest => {
  const found = all.filter((manifest) => manifest.kind === kind)
  expect(found).toHaveLength(1)
  return found[0]!
}
const deployment = (): unknown => only(manifests(render(...required()).output), 'Deployment').spec

describe.skipIf(!hasTool('helm', ['version'], { inCi: true }))('the Helm chart', () => {
  test('passes lint with every warning as an error', () => {
    expect(run('helm', ['lint', '--strict', chart, ...required()])).toMatchObject({ status: 0 })
  })

  test.each([
    ['secret', () => ['--set-file', `config=${config}`], 'set secret'],
    ['config', () => ['--set', 'secret=my-secrets'], 'set config'],
  ])('without %s it says what to set', (_, values, message) => {
    const { status, output } = render(...values())
    expect(status).toBe(1)
    expect(output).toContain(message)
  })

  test('the pod has no privileges, writes only to its volumes, and finds its secrets and configuration', () => {
    const container = {
      envFrom: [{ secretRef: { name: 'my-secrets' } }],
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
      resources: { limits: { memory: expect.any(String) } },
      volumeMounts: [{ mountPath: '/data' }, { mountPath: '/tmp' }, { mountPath: '/svc-router.yaml', readOnly: true }],
    }
    const pod = {
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [container],
    }
    expect(deployment()).toMatchObject({ template: { spec: pod } })
  })

  test('Prometheus reaches the metrics only if they are on, and only from where it may', () => {
    const portsOf = (...values: readonly string[]): { readonly pod: unknown; readonly policy: unknown } => {
      const all = manifests(render(...required(), ...values).output)
      const { template } = only(all, 'Deployment').spec as {
        template: { spec: { containers: { ports: { containerPort: number }[] }[] } }
      }
      const { ingress } = only(all, 'NetworkPolicy').spec as { ingress: unknown }
      return { pod: template.spec.containers[0]!.ports.map(({ containerPort }) => containerPort), policy: ingress }
    }
    expect(portsOf()).toMatchObject({ pod: [8787, 8788], policy: [{ ports: [{ port: 'api' }, { port: 'app' }] }] })
    const from = ['--set', 'metrics.enabled=true,metrics.from[0].podSelector.matchLabels.app=prometheus']
    expect(portsOf(...from)).toMatchObject({
      pod: [8787, 8788, 9464],
      policy: [{}, { ports: [{ port: 'metrics' }], from: [{ podSelector: { matchLabels: { app: 'prometheus' } } }] }],
    })
  })

  test('one pod has the SQLite database, and the next one starts after it has ended', () => {
    expect(deployment()).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } })
    const { status, output } = render(...required(), '--set', 'replicas=2')
    expect(status).toBe(1)
    expect(output).toContain('several replicas need PostgreSQL')
  })

  test('several pods share a PostgreSQL database, and are replaced one after the other', () => {
    writeFileSync(config, `${settings}database: { url_env: SVC_ROUTER_DATABASE_URL }\n`)
    const rendered = manifests(render(...required(), '--set', 'replicas=3').output)
    writeFileSync(config, settings)
    expect(only(rendered, 'Deployment').spec).toMatchObject({
      replicas: 3,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    })
    expect(rendered.map(({ kind }) => kind)).not.toContain('PersistentVolumeClaim')
  })

  test('a changed configuration restarts the pod', () => {
    const checksum = (text: string): string => {
      writeFileSync(config, text)
      const { template } = deployment() as { template: { metadata: { annotations: Record<string, string> } } }
      return template.metadata.annotations['checksum/config']!
    }
    const changed = checksum(`${settings}drain: 20s\n`)
    expect(checksum(settings)).not.toBe(changed)
  })

  test('the network policy allows what the service needs and excludes the metadata service of clouds', () => {
    const { spec } = only(manifests(render(...required()).output), 'NetworkPolicy')
    expect(spec).toMatchObject({ policyTypes: ['Ingress', 'Egress'] })
    expect(JSON.stringify(spec)).toContain('"except":["169.254.0.0/16"]')
  })

  const conformable = hasTool('kubeconform', ['-v'], { inCi: true }) && hasTool('ls', [schemas], { inCi: true })
  test.skipIf(!conformable).each(kubernetesVersions)(
    'every manifest conforms to the schemas of Kubernetes %s',
    (version) => {
      const { output } = render(...required(), ...everything)
      const location = `${localSchemas(version, output)}/{{.ResourceKind}}{{.KindSuffix}}.json`
      const check = (input: string): Ran =>
        run('kubeconform', ['-strict', '-summary', '-schema-location', location], { input })
      const checked = check(output)
      expect(checked).toMatchObject({ status: 0 })
      expect(checked.output).toContain(`Valid: ${manifests(output).length}, Invalid: 0, Errors: 0, Skipped: 0`)
      // The schemas are used: they reject a field that does not exist.
      const text = output.split(/^---$/m).find((part) => part.includes('kind: Deployment'))
      expect(check(text!.replace('readOnlyRootFilesystem', 'readOnlyRootFileSystem')).status).toBe(1)
    },
  )

  /** The schemas refer to each other by URL; kubeconform needs them by file name. */
  function localSchemas(version: string, rendered: string): string {
    const target = join(folder, version)
    const source = join(schemas, `v${version}-local-strict`)
    mkdirSync(target)
    const kinds = new Set(
      manifests(rendered)
        .map(({ kind }) => kind.toLowerCase())
        .concat('_definitions.json'),
    )
    for (const name of readdirSync(source).filter((file) => kinds.has(file.split('-')[0]!))) {
      const text = readFileSync(join(source, name), 'utf8').replaceAll('"/api/_definitions.json', '"_definitions.json')
      const { $id: _, ...schema } = JSON.parse(text) as Record<string, unknown>
      writeFileSync(join(target, name), JSON.stringify(schema))
    }
    return target
  }
})

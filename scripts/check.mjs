// npm run check: checks format, lint, types, and dead code, in this order. Lists failures, and exits with 1 if any failed.
import { spawnSync } from 'node:child_process'

const checks = [
  { name: 'format', command: ['oxfmt', '--check'], fix: 'node bin/run.mjs oxfmt' },
  { name: 'lint', command: ['oxlint', '--type-aware', '--deny-warnings'], fix: 'node bin/run.mjs oxlint --type-aware' },
  { name: 'types', command: ['tsc', '--noEmit', '-p', '.'], fix: 'node bin/run.mjs tsc --noEmit' },
  {
    name: 'types in the browser',
    command: ['tsc', '--noEmit', '-p', 'tsconfig.browser.json'],
    fix: 'node bin/run.mjs tsc --noEmit -p tsconfig.browser.json',
  },
  { name: 'dead code', command: ['knip'], fix: 'node bin/run.mjs knip' },
]
const timeoutMs = 300_000

const failed = checks.filter(
  ({ command: [program, ...args] }) => spawnSync(program, args, { stdio: 'inherit', timeout: timeoutMs }).status !== 0,
)

for (const check of checks)
  console.log(failed.includes(check) ? `✗ ${check.name}: see above, or run: ${check.fix}` : `✓ ${check.name}`)
process.exitCode = failed.length === 0 ? 0 : 1

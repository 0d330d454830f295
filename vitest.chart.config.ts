import { defineConfig } from 'vitest/config'

/** The Helm chart, with Helm and kubeconform: `npm run test:chart`. */
export default defineConfig({
  test: { include: ['tests/deploy/chart.test.ts'], testTimeout: 60_000 },
})

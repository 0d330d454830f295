/** Whether this is `npm run test:long`, which runs every case. Other runs use a fixed sample. */
export const isLongRun = process.env['SVC_ROUTER_TESTS'] === 'long'

/** The number of cases that a test runs. */
export function casesOf({ sample, all }: { readonly sample: number; readonly all: number }): number {
  return isLongRun ? all : sample
}

/** Whether this is `npm run test:long`, which runs every case. Other runs use a fixed sample. */
export const isLongRun = process.env['SVC_ROUTER_TESTS'] === 'long'

/** The cases that a test runs, or their number. */
export function casesOf<T = number>({ sample, all }: { readonly sample: T; readonly all: T }): T {
  return isLongRun ? all : sample
}

/** Whether this is `npm run test:long`, where tests take every case; otherwise they take a fixed sample. */
export const isLongRun = process.env['SVC_ROUTER_TESTS'] === 'long'

/** How many cases a test takes. */
export function casesOf({ sample, all }: { readonly sample: number; readonly all: number }): number {
  return isLongRun ? all : sample
}

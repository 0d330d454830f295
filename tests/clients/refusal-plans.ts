/** Plans that a test can exhaust with one request. */
export const plans = {
  max: { name: 'Max', requests_per_minute: 600, requests_per_month: 100_000, premium: true },
  free: { name: 'Free', requests_per_minute: 100, requests_per_month: 500 },
  tiny: { name: 'Tiny', requests_per_minute: 100, requests_per_month: 1 },
  slow: { name: 'Slow', requests_per_minute: 1, requests_per_month: 500 },
}

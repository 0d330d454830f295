import type { ServiceMetrics } from '../../src/metrics/service-metrics.ts'

/** The value of every time series in the text format, by name and labels. */
export function readSeries(text: string): ReadonlyMap<string, number> {
  const series = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, name, value] = /^([^#\s]\S*(?:\{.*\})?) (\S+)$/.exec(line) ?? []
    if (name !== undefined) series.set(name, Number(value))
  }
  return series
}

export async function seriesOf({ registry }: Pick<ServiceMetrics, 'registry'>): Promise<ReadonlyMap<string, number>> {
  return readSeries(await registry.metrics())
}

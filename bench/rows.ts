import { median, pairedRatios } from './statistics.ts'

/** An aim in words, and whether the figure reached it. */
export interface Aim {
  readonly text: string
  readonly isMet: boolean
}

/** One line of the report: one figure of one gateway, with its value in every round. */
export interface Row {
  readonly scenario: string
  readonly figure: string
  readonly gateway: string
  readonly values: readonly number[]
  /** The reference of the ratio, and the ratio of every round. */
  readonly ratioTo?: string
  readonly ratios?: readonly number[]
  readonly aim?: Aim
  readonly remark?: string
}

/** A figure of several contenders in the same rounds. */
export interface Comparison {
  readonly scenario: string
  readonly figure: string
  /** The values by contender, in display order. Each list has one value for each round. */
  readonly values: ReadonlyMap<string, readonly number[]>
  readonly reference: string
  /** For svc-router, times the reference. */
  readonly aimAtMost?: number
  /** For every other contender, times the reference. */
  readonly aimOthersAtMost?: number
  /** For Portkey, times svc-router. */
  readonly aimPeerAtLeast?: number
  readonly remarks?: ReadonlyMap<string, string>
}

/** Turns a comparison into rows: the median of the ratios within each round, and the aims if there are any. */
export function compare(comparison: Comparison): Row[] {
  const reference = comparison.values.get(comparison.reference)
  return [...comparison.values].map(([gateway, values]) => {
    const remark = comparison.remarks?.get(gateway)
    const aim = aimOf(gateway, values, comparison)
    const isCompared = reference !== undefined && gateway !== comparison.reference
    return {
      scenario: comparison.scenario,
      figure: comparison.figure,
      gateway,
      values,
      ...(isCompared ? { ratioTo: comparison.reference, ratios: pairedRatios(values, reference) } : {}),
      ...(aim === undefined ? {} : { aim }),
      ...(remark === undefined ? {} : { remark }),
    }
  })
}

function aimOf(gateway: string, values: readonly number[], comparison: Comparison): Aim | undefined {
  const { aimAtMost, aimPeerAtLeast, reference } = comparison
  const referenceValues = comparison.values.get(reference)
  if (gateway === 'svc-router' && aimAtMost !== undefined && referenceValues !== undefined) {
    const ratio = median(pairedRatios(values, referenceValues))
    return { text: `≤ ${aimAtMost.toFixed(2)} × ${reference}`, isMet: ratio <= aimAtMost }
  }
  const { aimOthersAtMost } = comparison
  if (aimOthersAtMost !== undefined && gateway !== reference && referenceValues !== undefined) {
    const ratio = median(pairedRatios(values, referenceValues))
    return { text: `≤ ${aimOthersAtMost.toFixed(2)} × ${reference}`, isMet: ratio <= aimOthersAtMost }
  }
  const ours = comparison.values.get('svc-router')
  if (gateway === 'portkey' && aimPeerAtLeast !== undefined && ours !== undefined) {
    const ratio = median(pairedRatios(values, ours))
    const text = `≥ ${aimPeerAtLeast.toFixed(1)} × svc-router: ${ratio.toFixed(1)}`
    return { text, isMet: ratio >= aimPeerAtLeast }
  }
  return undefined
}

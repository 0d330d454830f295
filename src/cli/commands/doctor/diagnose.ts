import { findAccount } from './find-account.ts'
import { findKeyOffline, findKeyOnline } from './find-key.ts'
import { findAsked, findPath } from './find-path.ts'
import { findReach } from './find-reach.ts'
import type { Finding, Wording } from './finding.ts'
import type { Observations, Subject } from './inspect-service.ts'

/** All problems found, blocking ones first, without those that only follow from another. */
export function diagnose(subject: Subject, sight: Observations, reporter: Wording): readonly Finding[] {
  const offline = findKeyOffline(subject, sight, reporter)
  const reach = findReach(subject, sight, reporter)
  if (reach !== undefined) return [reach, offline].filter((finding) => finding !== undefined)
  const asked = findAsked(sight, reporter)
  const found = [
    offline,
    findKeyOnline(subject, sight, reporter),
    ...findAccount(subject, sight, reporter),
    ...findPath(sight),
    asked,
  ]
    .filter((finding) => finding !== undefined)
    // The request that was sent failed for the same reason.
    .filter(({ code }) => asked === undefined || code !== 'failing')
  const unique = found.filter(({ code }, index) => found.findIndex((other) => other.code === code) === index)
  return [...unique.filter(({ blocks }) => blocks), ...unique.filter(({ blocks }) => !blocks)]
}

import { describeBackend, heldNote, openNotes } from '../../../domain/backend-status-text.ts'
import { frontierId, fusionId, nearest } from '../../../domain/profiles.ts'
import type { Answer } from './ask.ts'
import type { Finding, Wording } from './finding.ts'
import type { Observations, Subject } from './inspect-service.ts'
import { jsonOf, listOf, readNumberHeader, shown, standingOf, type ProfileStanding } from './read-answer.ts'

const notAsked = describeBackend({ state: 'open', reason: 'failing', isTroubled: false }).words

/** Checks plan, quota, rate limit, and connected providers of the account, using the headers of `GET /v1/models`. */
export function findAccount(subject: Subject, sight: Observations, reporter: Wording): Finding[] {
  const { models } = sight
  if (models.kind !== 'answer' || models.status !== 200) return []
  return [
    findPlan(subject, models, sight),
    findQuota(models, sight),
    findMinute(models),
    findUpstream(subject, models, reporter),
  ].filter((finding) => finding !== undefined)
}

/** Checks that the profile exists and the plan includes it. The plan is identified by its limits. */
function findPlan({ model }: Subject, models: Answer, { catalog, pricing }: Observations): Finding | undefined {
  const profile = listOf(jsonOf(catalog)['profiles']).find(({ id }) => id === model)
  const isPremium = profile?.['premium'] === true || model === fusionId
  const plans = listOf(jsonOf(pricing)['plans']).filter(
    (plan) =>
      plan['requests_per_minute'] === readNumberHeader(models, 'x-ratelimit-limit') &&
      plan['requests_per_month'] === readNumberHeader(models, 'x-quota-limit'),
  )
  if (isPremium && plans.length > 0 && plans.every((plan) => plan['premium'] === false))
    return {
      code: 'plan',
      what: `${model} requires a premium plan, and this account is on the ${shown(String(plans[0]!['name']))} plan`,
      fix: `upgrade${upgradeLink(pricing)}, or use another profile`,
      blocks: true,
    }
  const known = listOf(jsonOf(models)['data']).flatMap(({ id }) => (typeof id === 'string' ? [shown(id)] : []))
  if (known.includes(model)) return undefined
  const near = nearest(model, known) ?? known[0]
  return {
    code: 'model',
    what: profile === undefined ? `this service has no profile ${model}` : `the key may not use ${model}`,
    fix: near === undefined ? 'ask the operator to add one' : `use --model ${near}`,
    blocks: true,
  }
}

function findQuota(models: Answer, { pricing }: Observations): Finding | undefined {
  if (readNumberHeader(models, 'x-quota-remaining') !== 0) return undefined
  const reset = readNumberHeader(models, 'x-quota-reset')
  const day =
    reset === undefined ? 'at the start of next month' : `on ${new Date(reset * 1000).toISOString().slice(0, 10)} UTC`
  return {
    code: 'quota',
    what: `the monthly quota of ${readNumberHeader(models, 'x-quota-limit') ?? 'this account'} is used up; it resets ${day}`,
    fix: `upgrade${upgradeLink(pricing)}, or wait until then`,
    blocks: true,
  }
}

function findMinute(models: Answer): Finding | undefined {
  if (readNumberHeader(models, 'x-ratelimit-remaining') !== 0) return undefined
  const reset = readNumberHeader(models, 'x-ratelimit-reset') ?? 0
  const waitSeconds = Math.min(60, Math.max(1, reset - Math.floor(serverMs(models) / 1000)))
  return {
    code: 'minute',
    what: `this minute's ${readNumberHeader(models, 'x-ratelimit-limit') ?? ''} requests are used up`,
    fix: `sleep ${waitSeconds}`,
    blocks: false,
  }
}

function findUpstream({ model }: Subject, models: Answer, { command, isOwn }: Wording): Finding | undefined {
  const standing = standingOf(models, model)
  if (standing === undefined) return undefined
  if (standing.connected === 0) {
    // Providers that the account connects serve frontier, and fusion unless the operator chose backends for it.
    const isServedByOwn =
      model === frontierId || (model === fusionId && (standingOf(models, frontierId)?.connected ?? 0) === 0)
    const connectOne = isOwn
      ? command('upstream add PROVIDER --model MODEL')
      : 'connect your own provider on the account page'
    const addOne = isOwn ? 'add a backend to the profile in the configuration' : 'ask the operator to add a backend'
    const fix = isServedByOwn ? connectOne : `${addOne}, or use --model ${frontierId}`
    return { code: 'no_provider', what: `no provider can serve ${model} for this account`, fix, blocks: true }
  }
  if (standing.usable > 0) return findFailing(model, standing, { command, isOwn })
  const who = standing.connected === 1 ? 'the only backend' : `each of the ${standing.connected} backends`
  const test = isOwn ? testOwn(command) : 'see the status page of the service, and try again in a minute'
  if (standing.rejected === standing.connected)
    return {
      code: 'credentials',
      what: `${who} of ${model} is ${notAsked}: ${openNotes.credentials}`,
      fix: test,
      blocks: true,
    }
  // Only operators may learn which of these applies.
  const why = `${openNotes.failing}, ${openNotes.slow}, ${openNotes.rate}, or it is ${heldNote}`
  return { code: 'cooling', what: `${who} of ${model} is ${notAsked}: ${why}`, fix: test, blocks: true }
}

/** Reports connected providers whose last request failed. */
function findFailing(
  model: string,
  { connected, usable, failing }: ProfileStanding,
  { command, isOwn }: Pick<Wording, 'command' | 'isOwn'>,
): Finding | undefined {
  const broken = connected - usable + failing
  if (broken === 0) return undefined
  const who = connected === 1 ? 'the only backend' : `${broken} of ${connected} backends`
  return {
    code: 'failing',
    what: `${who} of ${model} failed ${broken === 1 ? 'its' : 'their'} last request${connected - usable > 0 ? ` or ${broken === 1 ? 'is' : 'are'} ${notAsked}` : ''}`,
    fix: isOwn ? testOwn(command) : 'try again; if it keeps failing, see the status page of the service',
    blocks: false,
  }
}

/** `upstream test` does not test backends in the configuration. */
function testOwn(command: Wording['command']): string {
  return `see why: ${command('requests')}, and test the providers that you connected: ${command('upstream test')}`
}

function upgradeLink(pricing: Observations['pricing']): string {
  const link = jsonOf(pricing)['upgradeUrl']
  return typeof link === 'string' ? ` at ${shown(link)}` : ''
}

/** The service's time, because the local clock may be wrong. */
function serverMs({ headers, wallMs }: Answer): number {
  const ms = Date.parse(headers.date ?? '')
  return Number.isNaN(ms) ? wallMs : ms
}

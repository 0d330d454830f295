import { noSettings, type SettingEntries, type SettingKind, type Settings } from '../domain/declared.ts'
import { isObject, type Json, type JsonObject } from '../domain/json.ts'
import { defaultPlans, usualFusionsAtOnce, type Plan } from '../domain/plans.ts'
import { fusionId } from '../domain/profiles.ts'

const usualCache = { marks: 'auto' }
/** Settings that have the same effect if they are omitted, by kind. */
const defaults: Readonly<Record<SettingKind, (name: string, value: JsonObject) => JsonObject>> = {
  plans: (_, { premium }) => ({ premium: false, ...(premium === true ? { fusions_at_once: usualFusionsAtOnce } : {}) }),
  backends: (_, { provider }) => ({ managed: false, reasoning: false, failure_domain: provider, cache: usualCache }),
  profiles: (name) => ({
    description: '',
    premium: name === fusionId,
    quota_units: 1,
    reports_model: false,
    reports_cost: false,
    cache: usualCache,
    // Without backends, this one uses those of svc-router/frontier.
    ...(name === fusionId ? {} : { backends: [] }),
  }),
}

/** One setting without what has no effect, so that equal settings have equal forms. */
function normalSetting(kind: SettingKind, name: string, value: JsonObject): JsonObject {
  const { fusions_at_once: fusions, ...rest } = value
  // Only premium plans have fusions.
  const given = kind === 'plans' && value['premium'] !== true ? rest : { ...rest, fusions_at_once: fusions }
  const usual = defaults[kind](name, value)
  return Object.fromEntries(
    Object.entries(given)
      .map(([field, inner]) => [field, withoutEmpty(inner)] as const)
      .filter(([field, inner]) => inner !== undefined && !isSame(inner, usual[field])),
  )
}

/** All settings of a file in that form. A file without plans has the default ones. */
export function normalSettings({ plans, backends, profiles }: Partial<Settings>): Settings {
  const hasPlans = plans !== undefined && Object.keys(plans).length > 0
  return {
    plans: normalEntries('plans', hasPlans ? plans : defaultPlanEntries()),
    backends: normalEntries('backends', backends ?? noSettings.backends),
    profiles: normalEntries('profiles', profiles ?? noSettings.profiles),
  }
}

export function normalEntries(kind: SettingKind, entries: SettingEntries): SettingEntries {
  return Object.fromEntries(Object.entries(entries).map(([name, value]) => [name, normalSetting(kind, name, value)]))
}

/** The default plans in the form of the file. */
function defaultPlanEntries(): SettingEntries {
  return Object.fromEntries(defaultPlans.map((plan) => [plan.id, planEntry(plan)]))
}

function planEntry({ name, requestsPerMinute, requestsPerMonth, premium, fusionsAtOnce }: Plan): JsonObject {
  return {
    name,
    requests_per_minute: requestsPerMinute,
    requests_per_month: requestsPerMonth,
    premium,
    ...(fusionsAtOnce === undefined ? {} : { fusions_at_once: fusionsAtOnce }),
  }
}

/** A group without settings has no effect either. */
function withoutEmpty(value: Json | undefined): Json | undefined {
  if (!isObject(value)) return value
  const members = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return members.length === 0 ? undefined : Object.fromEntries(members)
}

function isSame(value: Json, usual: Json | undefined): boolean {
  return value === usual || (usual !== undefined && JSON.stringify(value) === JSON.stringify(usual))
}

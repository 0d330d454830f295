import {
  applyDeclaration,
  planDeclaration,
  PlanOutdated,
  type ApplyPlan,
  type DeclaredDeps,
} from '../accounts/declared/apply.ts'
import { DeclarationError, type Change, type Undeclared } from '../accounts/declared/change.ts'
import { exportState, type Exported } from '../accounts/declared/export.ts'
import { readServiceState } from '../accounts/declared/service-state.ts'
import { declarationProblems, type ReadDeclaration } from '../config/declaration.ts'
import { ConfigError } from '../config/problems.ts'
import { isObject, objectOf, textOf, type Json, type JsonObject } from '../domain/json.ts'
import { Secret } from '../runtime/secret.ts'
import type { AskAdmin } from './admin-client.ts'
import type { Workspace } from './command.ts'
import { CommandError, exitCodes } from './failures.ts'

/** A key that was created, which can be shown only now. */
export interface NewKey {
  readonly account: string
  readonly name: string
  readonly id: string
  readonly key: Secret
}

/** A service that a file is compared with or applied to. */
export interface DeclaredTarget {
  plan(prune: boolean): Promise<ApplyPlan>
  /** Makes exactly the changes of a plan. */
  apply(prune: boolean, planId: string): Promise<ApplyPlan & { readonly created: readonly NewKey[] }>
}

/** The service of the data folder or database. */
export function localTarget(
  { changes, config }: Workspace,
  { declaration, from }: ReadDeclaration,
  again: string,
): DeclaredTarget {
  const serve: DeclaredDeps['serve'] = (stored) => config.settings.serve(stored, from)
  const deps: DeclaredDeps = { ...changes, configured: config.settings.configured, serve }
  return {
    plan: (prune) =>
      planDeclaration(deps, { declaration, prune }).catch((error: unknown) => explain(error, from, again)),
    async apply(prune, planId) {
      const applied = await applyDeclaration(deps, { declaration, prune }, planId).catch((error: unknown) =>
        explain(error, from, again),
      )
      const created = applied.created.map(({ accountName: account, stored: { name, id }, key }) => ({
        account,
        name,
        id,
        key,
      }))
      return { ...applied, created }
    },
  }
}

/** The state of the data folder or database as a file. */
export async function exportLocal({ changes, config }: Workspace, managed: boolean): Promise<Exported> {
  const state = await readServiceState(changes.store, config.settings.configured, changes.clock.nowMs())
  return exportState(state, managed ? 'managed' : 'all')
}

/** The same over the admin API. What it answers is not trusted. */
export async function exportRemote(ask: AskAdmin, managed: boolean): Promise<Exported> {
  const { file, omitted } = await ask('GET', `/state${managed ? '?managed=true' : ''}`)
  return { file: objectOf(file), omitted: listOf(omitted).map(textsOf) }
}

/** A service that an admin API changes. */
export function remoteTarget(ask: AskAdmin, { from }: ReadDeclaration): DeclaredTarget {
  const file = from.document.value as JsonObject
  return {
    plan: async (prune) => readPlan(await ask('POST', '/plan', { file, prune })),
    async apply(prune, planId) {
      const answer = await ask('POST', '/apply', { file, prune, plan: planId })
      const created = listOf(answer['keys']).map((each) => {
        const { account, name, id, key } = objectOf(each)
        return { account: textOf(account), name: textOf(name), id: textOf(id), key: new Secret(textOf(key)) }
      })
      return { ...readPlan(answer), created }
    },
  }
}

/** Reports problems at their position in the file. */
function explain(error: unknown, { name, document }: ReadDeclaration['from'], again: string): never {
  if (error instanceof DeclarationError)
    throw new ConfigError(name, declarationProblems(error.problems, document), 'declaration')
  if (!(error instanceof PlanOutdated)) throw error
  throw new CommandError(
    exitCodes.failure,
    'the service changed after the changes were listed, so none of them were made',
    `run it again: ${again}`,
  )
}

function readPlan({ plan, changes, undeclared }: JsonObject): ApplyPlan {
  return {
    id: textOf(plan),
    changes: listOf(changes).map((each): Change => {
      const { action, kind, path, fields, source } = objectOf(each)
      return {
        action: action === 'create' || action === 'delete' ? action : 'update',
        kind: textOf(kind) as Change['kind'],
        path: textsOf(path),
        fields: listOf(fields)
          .filter(isObject)
          .map(({ field, before, after }) => ({
            field: textOf(field),
            before: before === null ? undefined : before,
            after: after === null ? undefined : after,
          })),
        ...(source === 'configuration' ? { source } : {}),
      }
    }),
    undeclared: listOf(undeclared).map((each): Undeclared => {
      const { path, managed, value } = objectOf(each)
      return {
        path: textsOf(path),
        isManaged: managed === true,
        ...(typeof value === 'string' ? { note: value } : {}),
      }
    }),
  }
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : []
}

function textsOf(value: Json | undefined): readonly string[] {
  return listOf(value).map(textOf)
}

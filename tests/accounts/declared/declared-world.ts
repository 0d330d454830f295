import {
  applyDeclaration,
  planDeclaration,
  type ApplyPlan,
  type ApplyResult,
  type DeclaredDeps,
} from '../../../src/accounts/declared/apply.ts'
import { exportState } from '../../../src/accounts/declared/export.ts'
import { readServiceState } from '../../../src/accounts/declared/service-state.ts'
import type { Config } from '../../../src/config/config.ts'
import { readDeclaration, writeDeclaration } from '../../../src/config/declaration.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import type { Store } from '../../../src/storage/store.ts'
import { loadText } from '../../config/config-load.ts'

/** Files applied to one database, with a configuration file that has settings, too. */
export class DeclaredWorld {
  readonly store: Store
  readonly config: Config
  readonly deps: Omit<DeclaredDeps, 'serve'>

  constructor(store: Store, config = loadText('mode: local\n')) {
    this.store = store
    this.config = config
    this.deps = {
      store,
      transactions: store.declared,
      clock: systemClock(),
      random: systemRandom(),
      pepper: config.secrets.pepper,
      actor: { kind: 'cli' },
      configured: config.settings.configured,
    }
  }

  plan(file: string | object, prune = false): Promise<ApplyPlan> {
    const { deps, declaration } = this.#read(file)
    return planDeclaration(deps, { declaration, prune })
  }

  apply(file: string | object, prune = false, approvedPlan?: string): Promise<ApplyResult> {
    const { deps, declaration } = this.#read(file)
    return applyDeclaration(deps, { declaration, prune }, approvedPlan)
  }

  /** The state as the text of a file. */
  async export(): Promise<string> {
    const state = await readServiceState(this.store, this.config.settings.configured, this.deps.clock.nowMs())
    return writeDeclaration(exportState(state, 'all').file)
  }

  #read(file: string | object) {
    const { declaration, from } = readDeclaration('file.yaml', typeof file === 'string' ? file : JSON.stringify(file))
    const serve: DeclaredDeps['serve'] = (stored) => this.config.settings.serve(stored, from)
    return { declaration, deps: { ...this.deps, serve } }
  }
}

/** The lines of a plan: `update plans.pro requests_per_minute`. */
export function linesOf({ changes }: Pick<ApplyPlan, 'changes'>): readonly string[] {
  return changes.flatMap(({ action, path, fields }) =>
    fields.length === 0
      ? [`${action} ${path.join('.')}`]
      : fields.map(({ field }) => `${action} ${path.join('.')} ${field}`),
  )
}

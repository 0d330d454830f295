import { maxListedOperators } from '../../accounts/operators/operators.ts'
import type { WebDeps } from '../web-deps.ts'

/** Operators' addresses by id, including removed operators, because records refer to operators by id. */
export async function operatorEmails({ operators }: WebDeps): Promise<ReadonlyMap<string, string>> {
  const listed = await operators.store.listOperators(maxListedOperators)
  return new Map(listed.map(({ id, email }) => [id, email]))
}

/** The name of a recorded actor: `cli` or an operator id. */
export function nameOperator(by: string, emails: ReadonlyMap<string, string>): string {
  return by === 'cli' ? 'the command line' : (emails.get(by) ?? by)
}

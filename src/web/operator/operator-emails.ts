import { maxListedOperators } from '../../accounts/operators.ts'
import type { WebParts } from '../web-parts.ts'

/** The addresses of operators by their ids, the removed ones included: what is kept of what they did names them by id. */
export async function operatorEmails({ operators }: WebParts): Promise<ReadonlyMap<string, string>> {
  const listed = await operators.store.listOperators(maxListedOperators)
  return new Map(listed.map(({ id, email }) => [id, email]))
}

/** Who did something, as it is kept: `cli`, or an operator's id. */
export function nameOperator(by: string, emails: ReadonlyMap<string, string>): string {
  return by === 'cli' ? 'the command line' : (emails.get(by) ?? by)
}

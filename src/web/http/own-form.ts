import { isSameDigest } from '../../runtime/tokens.ts'
import { csrfField, csrfHeader, isFromOwnPage } from './csrf.ts'
import { Form } from './form.ts'
import { originOf } from './hosts.ts'
import { PageError } from './page-error.ts'
import { readForm } from './read-form.ts'
import type { SignedIn, Visit } from './visit.ts'

/**
 * Reads a submitted form. Rejects forms that do not come from our own pages or lack the CSRF token of the session,
 * whether an account's or an operator's. Our scripts send the token in a header, and their body is not read. @throws
 * PageError
 */
export async function readOwnForm(
  { deps, headers }: Pick<Visit, 'deps' | 'headers'>,
  request: Request,
  session: Pick<SignedIn, 'csrfToken'> | undefined,
  isScript = false,
): Promise<Form> {
  const isChange = request.method !== 'GET' && request.method !== 'HEAD'
  if (isChange && !isFromOwnPage(headers, originOf(headers.get('host') ?? '', deps.appUrl)))
    throw new PageError('not_our_form')
  const fields = request.method === 'POST' && !isScript ? await readForm(request) : new URLSearchParams()
  const proof = isScript ? headers.get(csrfHeader) : fields.get(csrfField)
  if (isChange && session !== undefined && !isSameDigest(proof ?? '', session.csrfToken))
    throw new PageError('not_our_form')
  return new Form(fields)
}

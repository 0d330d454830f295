import { isSameDigest } from '../domain/tokens.ts'
import { csrfField, csrfHeader, isFromOwnPage } from './csrf.ts'
import { Form } from './form.ts'
import { originOf } from './hosts.ts'
import { readForm } from './read-form.ts'
import { PageRefusal } from './refusals.ts'
import type { SignedIn, Visit } from './visit.ts'

/**
 * What was filled in. A form that is not from one of our own pages is refused, and so is one without the token of the
 * session that it is sent in, be it an account's or an operator's. A script of ours has the token in a header, and its body
 * is left alone. @throws PageRefusal
 */
export async function readOwnForm(
  { parts, headers }: Pick<Visit, 'parts' | 'headers'>,
  request: Request,
  session: Pick<SignedIn, 'csrfToken'> | undefined,
  isScript = false,
): Promise<Form> {
  const isChange = request.method !== 'GET' && request.method !== 'HEAD'
  if (isChange && !isFromOwnPage(headers, originOf(headers.get('host') ?? '', parts.appUrl)))
    throw new PageRefusal('not_our_form')
  const fields = request.method === 'POST' && !isScript ? await readForm(request) : new URLSearchParams()
  const proof = isScript ? headers.get(csrfHeader) : fields.get(csrfField)
  if (isChange && session !== undefined && !isSameDigest(proof ?? '', session.csrfToken))
    throw new PageRefusal('not_our_form')
  return new Form(fields)
}

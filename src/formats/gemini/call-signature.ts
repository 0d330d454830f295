const prefix = 'gemini:'
const base64 = /^[\w+/=-]+$/

/** What Google documents for a call whose signature is not at hand, such as one that another vendor's model made. */
export const unsignedCall = 'skip_thought_signature_validator'

/**
 * A call's `thoughtSignature` as sealed reasoning, so that it comes back with the conversation where the caller's format
 * keeps sealed reasoning. It names its vendor and its model: nobody else can open it.
 */
export function sealSignature(signature: string, model: string): string {
  return `${prefix}${model.replaceAll(':', '-')}:${signature}`
}

/** The signature in sealed reasoning, where this model can open it; undefined where it is another's. */
export function openSignature(sealed: string, model: string): string | undefined {
  if (!sealed.startsWith(prefix)) return undefined
  const end = sealed.indexOf(':', prefix.length)
  if (end < 0) return undefined
  const issuer = sealed.slice(prefix.length, end)
  const signature = sealed.slice(end + 1)
  return base64.test(signature) && isSameModel(issuer, model) ? signature : undefined
}

/** Google answers with a version's full name where an alias was asked for. */
function isSameModel(issuer: string, model: string): boolean {
  const asked = model.slice(model.lastIndexOf('/') + 1).replaceAll(':', '-')
  return issuer === '' || issuer === asked || issuer.startsWith(`${asked}-`) || asked.endsWith('-latest')
}

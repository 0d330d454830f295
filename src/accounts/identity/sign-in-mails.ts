import type { ProofPurpose } from '../../domain/identity.ts'
import type { Secret } from '../../runtime/secret.ts'
import type { LeakedKey } from '../leaked-keys/leaked-keys.ts'
import type { Mail } from '../ports.ts'

/**
 * Texts of the emails with a code or link. They reveal nothing about whether an account exists, because they can go to
 * anyone.
 */
const purposes = {
  sign_in: { subject: 'Sign in to svc-router', what: 'sign in to svc-router' },
  set_up: { subject: 'Set up your svc-router account', what: 'set up your svc-router account' },
  recover: { subject: 'Recover your svc-router key', what: 'get a new svc-router key' },
  add_email: {
    subject: 'Add this address to your svc-router account',
    what: 'add this address to a svc-router account',
  },
  operator_sign_in: {
    subject: 'Sign in to the svc-router operator console',
    what: 'sign in to the svc-router operator console (for operators only)',
  },
  operator_confirm: {
    subject: 'Confirm your identity in the svc-router operator console',
    what: 'confirm your identity in the svc-router operator console',
  },
} as const satisfies Readonly<Record<ProofPurpose, { readonly subject: string; readonly what: string }>>

/** Maximum number of keys listed in one email. */
const maxNamedKeys = 50

/** The email to an owner whose keys were found in public and revoked. `foundAt` is text from the reporter. */
export function writeLeakMail(to: string, keys: readonly LeakedKey[], keysUrl: string): Mail {
  const [first] = keys
  const isOne = keys.length === 1
  const named = keys.slice(0, maxNamedKeys)
  const lines = [
    ...(isOne && first !== undefined
      ? [
          `Your key “${first.keyName}” (${first.keyHint}) was found in a public place, so we revoked it.`,
          ...(first.foundAt === undefined ? [] : ['', `Reported location: ${first.foundAt}`]),
        ]
      : [
          `${keys.length} of your keys were found in public places, so we revoked them:`,
          '',
          ...named.flatMap(({ keyName, keyHint, foundAt }) => [
            `- “${keyName}” (${keyHint})`,
            ...(foundAt === undefined ? [] : [`    reported location: ${foundAt}`]),
          ]),
          ...(keys.length > named.length ? [`and ${keys.length - named.length} more`] : []),
        ]),
    '',
    isOne
      ? 'Requests with this key are now rejected. Create a new key and replace the old one:'
      : 'Requests with these keys are now rejected. Create new keys and replace the old ones:',
    '',
    `    ${keysUrl}`,
    '',
    `Also check your recent requests: someone else may have used ${isOne ? 'the key' : 'the keys'}.`,
  ]
  const subject = isOne
    ? 'Your svc-router key was found in public and has been revoked'
    : `${keys.length} of your svc-router keys were found in public and have been revoked`
  return { to, subject, text: `${lines.join('\n')}\n` }
}

/** The email with a code, a link, or both. */
export function writeProofMail(
  to: string,
  purpose: ProofPurpose,
  code: Secret | undefined,
  link: Secret | undefined,
): Mail {
  const { subject, what } = purposes[purpose]
  const lines = [
    ...(code === undefined ? [] : [`Your code to ${what}:`, '', `    ${code.reveal()}`, '']),
    ...(link === undefined ? [] : [linkIntroduction(what, code), '', `    ${link.reveal()}`, '']),
    code !== undefined && link !== undefined
      ? 'Either one works once, within 10 minutes. We will never ask you for them.'
      : 'It works once and expires in 10 minutes. We will never ask you for it.',
    `If you did not request this, ignore this email. Nothing happens without the ${code === undefined ? 'link' : 'code'}.`,
  ]
  return { to, subject, text: `${lines.join('\n')}\n` }
}

function linkIntroduction(what: string, code: Secret | undefined): string {
  return code === undefined
    ? `To ${what}, open this link and click the button on the page:`
    : 'Or open this link and click the button on the page:'
}

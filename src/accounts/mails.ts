import type { ProofPurpose } from '../domain/identity.ts'
import type { Secret } from '../domain/secret.ts'
import type { LeakedKey } from './leaked-keys.ts'
import type { Mail } from './ports.ts'

/** What each letter with a code is about. It says nothing of whether there is an account: it may go to anybody. */
const purposes = {
  sign_in: { subject: 'Sign in to svc-router', what: 'sign in to svc-router' },
  set_up: { subject: 'Set up your svc-router account', what: 'set up your svc-router account' },
  recover: { subject: 'Recover your svc-router key', what: 'get a new svc-router key' },
  add_email: {
    subject: 'Add this address to your svc-router account',
    what: 'add this address to a svc-router account',
  },
  operator_sign_in: {
    subject: 'Sign in to the operator’s console of svc-router',
    what: 'sign in to the operator’s console of svc-router, if you operate it',
  },
  operator_confirm: {
    subject: 'Confirm it is you in the console of svc-router',
    what: 'confirm that it is you in the operator’s console of svc-router',
  },
} as const satisfies Readonly<Record<ProofPurpose, { readonly subject: string; readonly what: string }>>

/** Keys that one letter names. */
const maxNamedKeys = 50

/** The letter to an owner whose keys were found in public and are revoked. Where they were found is somebody else's text. */
export function writeLeakMail(to: string, keys: readonly LeakedKey[], keysUrl: string): Mail {
  const [first] = keys
  const isOne = keys.length === 1
  const named = keys.slice(0, maxNamedKeys)
  const lines = [
    ...(isOne && first !== undefined
      ? [
          `Your key “${first.keyName}” (${first.keyHint}) was found where others can read it, so it is revoked.`,
          ...(first.foundAt === undefined ? [] : ['', `Whoever found it says it is here: ${first.foundAt}`]),
        ]
      : [
          `${keys.length} of your keys were found where others can read them, so they are revoked:`,
          '',
          ...named.flatMap(({ keyName, keyHint, foundAt }) => [
            `- “${keyName}” (${keyHint})`,
            ...(foundAt === undefined ? [] : [`  said to be here: ${foundAt}`]),
          ]),
          ...(keys.length > named.length ? [`and ${keys.length - named.length} more`] : []),
        ]),
    '',
    isOne
      ? 'Every request with it is refused. Make a new one and put it where the old one was:'
      : 'Every request with them is refused. Make new ones and put them where the old ones were:',
    '',
    `    ${keysUrl}`,
    '',
    `Look at the requests of the last days, too: somebody else may have used ${isOne ? 'it' : 'them'}.`,
  ]
  const subject = isOne
    ? 'Your svc-router key was found in public and is revoked'
    : `${keys.length} of your svc-router keys were found in public and are revoked`
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
    'It works once, within 10 minutes. Nobody of svc-router ever asks you for it.',
    `If this was not you, do nothing: without the ${code === undefined ? 'link' : 'code'} nothing happens.`,
  ]
  return { to, subject, text: `${lines.join('\n')}\n` }
}

function linkIntroduction(what: string, code: Secret | undefined): string {
  return code === undefined
    ? `To ${what}, open this link and press the button there:`
    : 'Or open this link and press the button there:'
}

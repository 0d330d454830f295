import { isWellFormedKey } from '../../domain/keys.ts'
import { describeMalformedKey } from '../../domain/malformed-key.ts'
import type { Finding, Telling } from './finding.ts'
import type { Sight, Subject } from './look.ts'
import { refusalOf } from './read-answer.ts'

/** What is wrong with the key by itself: told offline, from its shape and its checksum (contract 3.3). */
export function findKeyOffline({ key, keyVariable }: Subject, sight: Sight, telling: Telling): Finding | undefined {
  if (key === undefined) {
    const link = refusalOf(sight.models)?.link
    const fix =
      telling.isOwn || link === undefined ? telling.keyCommand : `get one at ${link}, then: ${telling.keyCommand}`
    return finding('key_missing', `${keyVariable} is not set`, fix)
  }
  const text = key.reveal()
  if (isWellFormedKey(text)) return undefined
  const what =
    isWellFormedKey(text.trim()) && text !== text.trim()
      ? 'there are spaces or line ends around it'
      : describeMalformedKey(text).replace(/\.$/, '').replace(/^T/, 't')
  return finding(
    'key_malformed',
    `${keyVariable} does not hold a key of this service: ${what}`,
    telling.isOwn ? `take the first key: ${telling.keyCommand}` : `copy the whole key once more: ${telling.keyCommand}`,
  )
}

/** What the service says of a key that is well formed, or of the request that carried it. */
export function findKeyOnline(subject: Subject, sight: Sight, telling: Telling): Finding | undefined {
  const refusal = refusalOf(sight.models)
  const { keyVariable, userAgent } = subject
  const anotherKey = telling.isOwn
    ? `make another: ${telling.command('keys create')}`
    : `make another${refusal?.link === undefined ? '' : ` at ${refusal.link}`}, then: ${telling.keyCommand}`
  if (refusal === undefined || refusal.code === 'not_found') return undefined
  switch (refusal.code) {
    case 'key_missing':
    case 'key_malformed':
      // A key that is not there or malformed was not sent, and is told offline.
      if (findKeyOffline(subject, sight, telling) !== undefined) return undefined
      return finding(
        'header_stripped',
        'the key was sent and did not arrive: a proxy takes the header Authorization away or changes it',
        'let the proxy pass it on, with nginx: proxy_set_header Authorization $http_authorization;',
      )
    case 'key_revoked':
      return finding('key_revoked', `the key in ${keyVariable} was revoked and will not work again`, anotherKey)
    case 'key_inactive':
      return finding(
        'key_inactive',
        `the key in ${keyVariable} is unknown to this service, disabled or expired, or its account is suspended`,
        telling.isOwn ? `see the keys of this service: ${telling.command('keys list')}` : anotherKey,
      )
    case '1010':
      return telling.isNamedUserAgent
        ? finding(
            'user_agent',
            `the User-Agent "${userAgent}" does not say what it is, and is refused (1010)`,
            'have your client send one that does: User-Agent: my-app/1.0 (me@example.com)',
          )
        : finding(
            'user_agent',
            'a proxy takes the header User-Agent away, so that requests are refused (1010)',
            'let the proxy pass it on, with nginx: proxy_set_header User-Agent $http_user_agent;',
          )
    default:
      return finding(refusal.code, refusal.message.replace(/\.$/, ''), `try again: ${telling.command('doctor')}`)
  }
}

function finding(code: string, what: string, fix: string): Finding {
  return { code, what, fix, blocks: true }
}

import { describeMalformedKey } from '../../../domain/describe-malformed-key.ts'
import { isWellFormedKey } from '../../../domain/keys.ts'
import type { Finding, Wording } from './finding.ts'
import type { Observations, Subject } from './inspect-service.ts'
import { apiErrorOf } from './read-answer.ts'

/** Checks the key offline, by its format and checksum (contract 3.3). */
export function findKeyOffline(
  { key, keyVariable }: Subject,
  sight: Observations,
  reporter: Wording,
): Finding | undefined {
  if (key === undefined) {
    const link = apiErrorOf(sight.models)?.link
    const fix =
      reporter.isOwn || link === undefined ? reporter.keyCommand : `get one at ${link}, then: ${reporter.keyCommand}`
    return finding('key_missing', `${keyVariable} is not set`, fix)
  }
  const text = key.reveal()
  if (isWellFormedKey(text)) return undefined
  const what =
    isWellFormedKey(text.trim()) && text !== text.trim()
      ? 'there are spaces or line breaks around it'
      : describeMalformedKey(text).replace(/\.$/, '').replace(/^T/, 't')
  return finding(
    'key_malformed',
    `${keyVariable} does not contain a key for this service: ${what}`,
    reporter.isOwn ? `set a valid one: ${reporter.keyCommand}` : `copy the whole key again: ${reporter.keyCommand}`,
  )
}

/** Checks what the service says about a well-formed key or its request. */
export function findKeyOnline(subject: Subject, sight: Observations, reporter: Wording): Finding | undefined {
  const apiError = apiErrorOf(sight.models)
  const { keyVariable, userAgent } = subject
  const anotherKey = reporter.isOwn
    ? `create a new one: ${reporter.command('keys create')}`
    : `create a new one${apiError?.link === undefined ? '' : ` at ${apiError.link}`}, then: ${reporter.keyCommand}`
  if (apiError === undefined || apiError.code === 'not_found') return undefined
  switch (apiError.code) {
    case 'key_missing':
    case 'key_malformed':
      // A missing or malformed key was not sent; findKeyOffline reports it.
      if (findKeyOffline(subject, sight, reporter) !== undefined) return undefined
      return finding(
        'header_stripped',
        'the key was sent but did not arrive: a proxy removes or changes the Authorization header',
        'make the proxy forward it; for nginx: proxy_set_header Authorization $http_authorization;',
      )
    case 'key_revoked':
      return finding('key_revoked', `the key in ${keyVariable} was revoked and will not work again`, anotherKey)
    case 'key_inactive':
      return finding(
        'key_inactive',
        `the key in ${keyVariable} is unknown to this service, or its account is suspended`,
        reporter.isOwn ? `see the keys of this service: ${reporter.command('keys list')}` : anotherKey,
      )
    case '1010':
      return reporter.isNamedUserAgent
        ? finding(
            'user_agent',
            `the User-Agent "${userAgent}" does not identify the client and is rejected (1010)`,
            'make your client send a descriptive one: User-Agent: my-app/1.0 (me@example.com)',
          )
        : finding(
            'user_agent',
            'a proxy removes the User-Agent header, so requests are rejected (1010)',
            'make the proxy forward it; for nginx: proxy_set_header User-Agent $http_user_agent;',
          )
    default:
      return finding(apiError.code, apiError.message.replace(/\.$/, ''), `try again: ${reporter.command('doctor')}`)
  }
}

function finding(code: string, what: string, fix: string): Finding {
  return { code, what, fix, blocks: true }
}

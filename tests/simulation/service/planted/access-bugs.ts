import type { PlantedBug } from './planted-bug.ts'

const cache = 'gateway/auth/key-cache.ts'
const auth = 'gateway/auth/authenticate.ts'

/** Bugs of keys, caches, and records of changes. */
export const accessBugs: readonly PlantedBug[] = [
  {
    name: 'revoked-key-stays-cached',
    story: 'A process does not forget a revoked key (LiteLLM 9820, 34217).',
    patches: [{ file: cache, find: '      this.#entries.clear()\n', replace: '' }],
  },
  {
    name: 'change-tells-no-cache',
    story: 'A change does not increment the revision that caches poll.',
    patches: [{ file: 'storage/revision.ts', find: "row('value', '+', 1)", replace: "row('value', '+', 0)" }],
  },
  {
    name: 'outage-becomes-401',
    story: 'A store that does not answer makes every key unknown (OpenRouter, February 2026).',
    patches: [
      {
        file: cache,
        find: '    const lookup = this.#inTime(this.#store.find(digest))\n',
        replace: '    const lookup = this.#inTime(this.#store.find(digest))\n      .catch(() => undefined)\n',
      },
    ],
  },
  {
    name: 'failed-lookup-stays',
    story: 'A lookup that failed is never made again: the key is dead until the next start.',
    patches: [
      {
        file: cache,
        find: '      .finally(() => {\n        this.#running -= 1\n',
        replace: '      .then((found) => {\n        this.#running -= 1\n',
      },
      {
        file: cache,
        find: '=== lookup) this.#lookups.delete(digest)\n',
        replace: '=== lookup) this.#lookups.delete(digest)\n        return found\n',
      },
      { file: cache, find: '      this.#lookups.clear()\n', replace: '' },
    ],
  },
  {
    name: 'cache-key-is-a-prefix',
    story: 'Two keys share one cache entry, because its name is only a part of the digest (CVE-2026-35030).',
    patches: [
      {
        file: cache,
        find: '    const known = this.#entries.get(digest)',
        replace: '    const known = this.#entries.get(digest.slice(0, 0))',
      },
      {
        file: cache,
        find: '    else this.#entries.set(digest, entry)',
        replace: '    else this.#entries.set(digest.slice(0, 0), entry)',
      },
    ],
  },
  {
    name: 'suspended-account-admitted',
    story: 'A key is checked, and not the account that it belongs to.',
    patches: [
      { file: auth, find: "  if (account.suspended) throw refused('key_inactive', account, keyId)\n", replace: '' },
    ],
  },
  {
    name: 'calls-after-revocation',
    story: 'A request that began before the revocation goes on calling providers (findings A 7).',
    patches: [
      {
        file: 'gateway/auth/call-grant.ts',
        find: '    const now = principal.recheck()\n',
        replace: '    const now: Principal | Promise<Principal> = principal\n',
      },
    ],
  },
  {
    name: 'revoked-while-it-waited',
    story:
      'A key is checked only when the request arrives, and not after its body or the store was waited for (found by this simulation).',
    patches: [
      {
        file: 'gateway/admit-request.ts',
        find: '  const now = before.recheck()\n',
        replace: '  const now: Principal | Promise<Principal> = before\n',
      },
    ],
  },
  {
    name: 'change-without-audit-entry',
    story: 'A change is made and its audit entry is not written.',
    patches: [
      {
        file: 'storage/revision.ts',
        find: '      for (const each of [record].flat()) await appendEntry(transaction, each)\n    })',
        replace: '    })',
      },
    ],
  },
  {
    name: 'own-provider-for-everybody',
    story: "An account's connection and credential serve other accounts (findings: cross-account).",
    patches: [
      {
        file: 'providers/catalog.ts',
        find: '      const cached = own.get(accountId)\n      if (cached?.access !== undefined) {\n        if',
        replace: '      const cached = [...own.values()][0]\n      if (cached?.access !== undefined) {\n        if',
      },
      {
        file: 'providers/catalog.ts',
        find: '      const cached = own.get(accountId)\n      if (cached?.access !== undefined) return serves',
        replace: '      const cached = [...own.values()][0]\n      if (cached?.access !== undefined) return serves',
      },
    ],
  },
  {
    name: 'prompt-in-the-log',
    story: 'A log line contains what the caller sent (LiteLLM: a guardrail logged raw requests).',
    patches: [
      {
        file: 'gateway/gateway.ts',
        find: '    const profile = this.#profileOf(principal, read, given.format)\n',
        replace:
          "    const profile = this.#profileOf(principal, read, given.format)\n    this.#deps.log({ event: 'store_failing', reason: JSON.stringify(given.body) })\n",
      },
    ],
  },
  {
    name: 'prompt-in-the-database',
    story: 'The input of a stored response is not encrypted.',
    patches: [
      {
        file: 'gateway/responses/response-persister.ts',
        find: "    const sealedInput = this.#seal(id, 'input', input)\n",
        replace: '    const sealedInput = input\n',
      },
    ],
  },
]

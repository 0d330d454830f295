import { budgetStates } from '../../accounts/budgets.ts'
import { maxListedKeys } from '../../accounts/keys.ts'
import { streamTexts } from '../http/text-stream.ts'
import type { AccountVisit } from '../http/visit.ts'

/** Limits on one export; a list that reaches its limit ends with `{"truncated": true}`. */
const maxRequests = 200_000
const maxAnswers = 10_000
const maxAuditEntries = 10_000
const maxOthers = 1_000
const maxAnswerBytes = 256 * 1024 * 1024
const pageRows = 200

/** One section of the file: a value, or a list that is streamed. */
type Section = readonly [name: string, value: unknown] | readonly [name: string, items: () => AsyncIterable<unknown>]

/** The last item of a list that was truncated at its limit. */
const cut = { truncated: true } as const

/**
 * Streams everything stored about the visitor's account as one JSON object, with backpressure. It contains no secrets:
 * keys, passkeys, and sessions are stored only as digests, and credentials stay encrypted (contract 19.11).
 */
export function streamAccountData(visit: AccountVisit): ReadableStream<Uint8Array> {
  return streamTexts(visit, writeSections(sectionsOf(visit)))
}

async function* writeSections(sections: AsyncIterable<Section>): AsyncGenerator<string, undefined> {
  let before = '{\n'
  for await (const [name, value] of sections) {
    if (typeof value !== 'function') yield `${before}${JSON.stringify(name)}: ${JSON.stringify(value)}`
    else {
      yield `${before}${JSON.stringify(name)}: [`
      let between = '\n'
      for await (const item of (value as () => AsyncIterable<unknown>)()) {
        yield `${between}${JSON.stringify(item)}`
        between = ',\n'
      }
      yield '\n]'
    }
    before = ',\n'
  }
  yield '\n}\n'
  return undefined
}

async function* sectionsOf(visit: AccountVisit): AsyncGenerator<Section> {
  const { deps, signedIn } = visit
  const { account } = signedIn
  const { id } = account
  const { store } = deps.identity
  yield ['madeAt', new Date(deps.clock.nowMs()).toISOString()]
  yield ['account', account]
  yield ['emails', await store.listEmails(id)]
  yield ['signInProofs', await deps.accountData.store.listProofs(id, maxOthers)]
  yield ['sessions', await store.listSessions(id)]
  yield ['passkeys', await store.listPasskeys(id)]
  yield ['keys', await deps.control.store.listKeys(id, maxListedKeys)]
  const upstreams = await deps.control.store.listUpstreams(id)
  yield [
    'upstreams',
    upstreams.map(({ sealedCredential, ...shown }) => ({ ...shown, hasCredential: sealedCredential !== null })),
  ]
  const billing = deps.sales.plansDeps.store
  yield ['billing', (await billing.findBilling(id)) ?? null]
  yield ['upgradeRequests', await billing.listUpgradeRequests({ accountId: id, limit: maxOthers })]
  yield ['managedRequests', await deps.records.listManagedRequests({ accountId: id, limit: maxOthers })]
  yield ['tickets', await deps.accountData.store.listOwnTickets(id, maxOthers)]
  yield ['budgets', await budgetStates(deps.budgets.store, id, deps.budgets.clock.nowMs())]
  const webhooks = await deps.webhooks.store.listWebhooks(id)
  yield [
    'webhooks',
    webhooks.map(({ id: webhookId, url, createdAtMs, previousUntilMs }) => ({
      id: webhookId,
      url,
      createdAtMs,
      previousUntilMs,
    })),
  ]
  yield ['webhookDeliveries', await deps.webhooks.store.listWebhookDeliveries(id, undefined, maxOthers)]
  yield ['usedUnits', await deps.accountData.store.listUsedUnits(id, maxOthers)]
  yield ['requests', () => requestsOf(visit)]
  yield ['refusedRequests', () => refusedOf(visit)]
  yield ['storedAnswers', () => answersOf(visit)]
  yield ['conversations', () => conversationsOf(visit)]
  yield ['audit', () => auditOf(visit)]
}

async function* requestsOf({ deps, signedIn }: AccountVisit): AsyncGenerator {
  let beforeId: string | undefined
  for (let count = 0; count < maxRequests; count += pageRows) {
    const selection = { limit: pageRows, ...(beforeId !== undefined && { beforeId }) }
    const rows = await deps.activity.listActivity(signedIn.account.id, selection, pageRows)
    yield* rows
    if (rows.length < pageRows) return
    beforeId = rows.at(-1)!.id
  }
  yield cut
}

async function* refusedOf({ deps, signedIn }: AccountVisit): AsyncGenerator {
  let before: Awaited<ReturnType<typeof deps.activity.listRefusedHours>>[number] | undefined
  for (let count = 0; count < maxRequests; count += pageRows) {
    const page = await deps.activity.listRefusedHours(signedIn.account.id, before, pageRows)
    yield* page
    if (page.length < pageRows) return
    before = page.at(-1)
  }
  yield cut
}

/** Decrypts the account's stored responses. Nothing else in the app does that. */
async function* answersOf({ deps, signedIn }: AccountVisit): AsyncGenerator {
  const { id } = signedIn.account
  let before: Awaited<ReturnType<typeof deps.answers.list>>[number] | undefined
  let bytes = 0
  for (let count = 0; count < maxAnswers; count += pageRows) {
    const page = await deps.answers.list(id, before, pageRows)
    for (const answer of page) {
      if (bytes > maxAnswerBytes) return void (yield cut)
      const content = (await deps.answers.open(id, answer.id)) ?? null
      bytes += JSON.stringify(content).length
      yield { ...answer, content }
    }
    if (page.length < pageRows) return
    before = page.at(-1)
  }
  yield cut
}

async function* conversationsOf({ deps, signedIn }: AccountVisit): AsyncGenerator {
  const { id } = signedIn.account
  const { conversations } = deps
  let before: Awaited<ReturnType<typeof conversations.list>>[number] | undefined
  let readBytes = 0
  for (let count = 0; count < maxAnswers; count += pageRows) {
    const page = await conversations.list(id, before, pageRows)
    for (const conversation of page) {
      if (readBytes > maxAnswerBytes) return void (yield cut)
      const { createdAtMs, lastUsedAtMs, bytes } = conversation
      const content = (await conversations.open(id, conversation.id)) ?? null
      readBytes += bytes
      yield { id: conversation.id, createdAtMs, lastUsedAtMs, content }
    }
    if (page.length < pageRows) return
    before = page.at(-1)
  }
  yield cut
}

async function* auditOf({ deps, signedIn }: AccountVisit): AsyncGenerator {
  const accountId = signedIn.account.id
  let beforeSequence: number | undefined
  for (let count = 0; count < maxAuditEntries; count += pageRows) {
    const selection = { accountId, limit: pageRows, ...(beforeSequence !== undefined && { beforeSequence }) }
    const entries = await deps.records.listAudit(selection)
    yield* entries
    if (entries.length < pageRows) return
    beforeSequence = entries.at(-1)!.sequence
  }
  yield cut
}

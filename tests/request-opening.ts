import type { RequestOpening } from '../src/domain/requests.ts'

/** A streamed request of one account, as it is admitted. */
export const requestOpening = {
  id: 'req_1',
  accountId: 'acc_1',
  keyId: 'key_1',
  profile: 'svc-router/frontier',
  format: 'openai-chat',
  stream: true,
  units: 1,
} as const satisfies RequestOpening

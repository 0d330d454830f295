import type { ApiOperation } from './operation.ts'

/** What a key can read about itself and the requests of its account (contract 43). */
export const selfServiceOperations: readonly ApiOperation[] = [
  {
    access: 'key',
    errorCodes: 'lookup',
    method: 'get',
    path: '/v1/key',
    id: 'getKey',
    summary: 'Your key',
    description: 'Shows the plan, its limits, the budgets that count your requests, and what is left of each. Free.',
    answer: 'The key that was sent.',
  },
  {
    access: 'key',
    errorCodes: 'lookup',
    method: 'get',
    path: '/v1/requests/{request_id}',
    id: 'getRequest',
    summary: 'A request',
    description:
      'Shows a request of your account: its attempts, the backend and model that answered, its usage, and what it cost. Never its text. Free.',
    parameters: [
      {
        name: 'request_id',
        in: 'path',
        description: 'The ID of a request, from the response header `X-Request-Id`.',
        schema: { type: 'string' },
      },
    ],
    answer: 'The record of the request.',
  },
]

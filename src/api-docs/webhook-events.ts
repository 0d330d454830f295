import { webhookEventTypes } from '../domain/alerts.ts'
import { budgetScopes, budgetUnits, budgetWindows } from '../domain/budgets.ts'
import type { Schema } from './operation.ts'

const text: Schema = { type: 'string' }
const number: Schema = { type: 'number' }

const budget: Schema = {
  type: 'object',
  description: 'The budget. Amounts are in US dollars, or in tokens if that is its unit.',
  properties: {
    object: { const: 'budget' },
    id: text,
    account: text,
    scope: { enum: budgetScopes },
    key: { ...text, description: 'The ID of the key, if it is a budget for one.' },
    profile: { ...text, description: 'The profile, if it is a budget for one.' },
    unit: { enum: budgetUnits },
    window: { enum: budgetWindows },
    rolling: { type: 'boolean' },
    set_by: { enum: ['account', 'operator'] },
    limit: number,
    spent: number,
    held: number,
    left: number,
    resets_at: text,
  },
}

/** What webhooks of accounts and of the operator receive (contract 46.14, 46.16). */
export const webhookEvents: Readonly<Record<string, object>> = {
  budgetAlert: {
    post: {
      operationId: 'budgetAlert',
      summary: 'A share of a budget is spent',
      description:
        'Sent to webhooks when 50%, 80%, and 100% of a budget is spent. Can arrive twice with the same ID. A test has the type `webhook.test` and no budget.',
      parameters: [
        {
          name: 'X-Svc-Router-Signature',
          in: 'header',
          required: true,
          description:
            'The time of the attempt in Unix seconds, and the HMAC-SHA-256 of the time, a dot, and the body: `t=TIME,v1=MAC`. With a second `v1` after a rotation of the secret.',
          schema: text,
        },
      ],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['object', 'id', 'type', 'created_at', 'url'],
              properties: {
                object: { const: 'event' },
                id: text,
                type: { enum: webhookEventTypes },
                created_at: text,
                threshold_percent: { enum: [50, 80, 100] },
                budget,
                account: { ...text, description: 'Of a test: the account.' },
                url: text,
              },
            },
          },
        },
      },
      responses: { '2XX': { description: 'The message is received. It is sent again after any other answer.' } },
    },
  },
}

import type { RequestRow } from '../../src/storage/schema/schema.ts'

/** The row of an answered request of `acc_1`, with minimal values except for `changes`. */
export function requestRow(id: string, admittedAtMs: number, changes: Partial<RequestRow> = {}): RequestRow {
  return {
    id,
    account_id: 'acc_1',
    key_id: 'key_1',
    profile: 'svc-router/frontier',
    format: 'openai-chat',
    stream: 0,
    units: 1,
    period_id: '2026-11',
    admitted_at_ms: admittedAtMs,
    state: 'done',
    charged: 1,
    due_mark: null,
    attempts: null,
    input_tokens: null,
    output_tokens: null,
    cached_tokens: null,
    reasoning_tokens: null,
    usage_source: null,
    error_code: null,
    first_content_ms: null,
    total_ms: 5,
    fusions: null,
    passed_by: null,
    number: null,
    node_id: null,
    holds: null,
    booked: null,
    ...changes,
  }
}

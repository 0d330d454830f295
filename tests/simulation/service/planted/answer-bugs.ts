import type { PlantedBug } from './planted-bug.ts'

const run = 'gateway/request/request-run.ts'
const failover = 'gateway/request/failover.ts'
const attempt = 'gateway/request/attempt.ts'
const relay = 'gateway/lanes/relay-lane.ts'

/** Bugs of calls, failover, and delivery. */
export const answerBugs: readonly PlantedBug[] = [
  {
    name: 'truncated-stream-looks-whole',
    story: 'A stream that its provider cut ends as if it were complete (openai-node accepts a clean end).',
    patches: [
      {
        file: relay,
        find: "    if (!this.finished) throw this.upstreamError ?? new UpstreamError('broken')\n",
        replace: '',
      },
    ],
  },
  {
    name: 'error-event-relayed',
    story: 'An error in the middle of a stream is relayed as an event like any other (findings B 2).',
    patches: [
      {
        file: 'formats/openai-chat/read-answer.ts',
        find: '    throwNamedError(name, data)\n    if (data',
        replace: '    if (data',
      },
      {
        file: 'formats/openai-chat/read-answer.ts',
        find: '    const chunk = this.#parser.parse(data)\n    throwError(chunk)\n',
        replace: '    const chunk = this.#parser.parse(data)\n    if (chunk.error !== undefined) return nothing\n',
      },
    ],
  },
  {
    name: 'abort-is-a-success',
    story: 'An unknown finish reason counts as a complete answer (findings E 4: vLLM restarts).',
    patches: [
      { file: 'formats/openai-chat/finish-reason.ts', find: "['stop', 'eos',", replace: "['stop', 'abort', 'eos'," },
    ],
  },
  {
    name: 'events-after-the-end',
    story: 'What a provider sends after the end of a stream is relayed (findings B 11).',
    patches: [
      {
        file: relay,
        find: '    if (event.data === done || this.#isDone || parsed === undefined) return',
        replace: '    if (event.data === done || parsed === undefined) return',
      },
      {
        file: relay,
        find: '    if (wasFinished && this.#stream.followsEnd?.(parsed) !== true) return',
        replace: '    if (wasFinished && this.#stream.followsEnd === undefined) return',
      },
    ],
  },
  {
    name: 'no-failure-event',
    story: 'A stream that breaks ends without a terminal event.',
    patches: [
      {
        file: run,
        find: '    sink.end(run.lane.failure(failure), run.lane.encoding)\n',
        replace: '    if (failure !== undefined) sink.end()\n',
      },
    ],
  },
  {
    name: 'connection-reused-within-an-answer',
    story: 'An abandoned call returns its connection to the pool, and the next call reads the rest of its answer.',
    patches: [
      {
        file: 'providers/http/connection.ts',
        find: '    if (this.#socket !== undefined) this.#drop()\n',
        replace: '    if (this.#socket !== undefined) this.#owner.release(this)\n',
      },
    ],
  },
  {
    name: 'call-not-aborted',
    story: 'A call goes on after its client disconnected (LiteLLM 22805: cost).',
    patches: [
      {
        file: run,
        find: "    this.#source.current?.stop(failure ?? new UpstreamError('cancelled'))\n",
        replace: '',
      },
    ],
  },
  {
    name: 'asks-a-fourth-backend',
    story: 'Failover multiplies the load of an outage.',
    patches: [
      {
        file: 'gateway/routing/candidates.ts',
        find: 'export const maxAttempts = 3',
        replace: 'export const maxAttempts = 5',
      },
    ],
  },
  {
    name: 'asks-the-same-backend-again',
    story: 'A backend that failed is a candidate again.',
    patches: [
      {
        file: 'gateway/routing/candidates.ts',
        find: '    if (chosen !== undefined) this.#left.splice(this.#left.indexOf(chosen), 1)\n',
        replace: '',
      },
    ],
  },
  {
    name: 'wrong-retry-count',
    story: 'The response says how many backends were asked, not how many failed.',
    patches: [
      { file: failover, find: 'return Math.max(0, this.#asked - 1 - this.#unfailed)', replace: 'return this.#asked' },
    ],
  },
  {
    name: 'retry-after-of-zero',
    story: 'Callers are told to come back at once.',
    patches: [
      {
        file: 'gateway/request/exhausted-error.ts',
        find: 'Math.max(1, Math.ceil((soonestMs - nowMs) / 1000))',
        replace: 'Math.max(0, Math.ceil((soonestMs - nowMs) / 1000))',
      },
    ],
  },
  {
    name: 'no-idle-timeout',
    story: 'A provider that stops in the middle of a stream is waited for.',
    patches: [
      {
        file: 'gateway/request/answer-delivery.ts',
        find: '    } else if (silentMs !== undefined && nowMs - this.#run.lastEventMs >= silentMs) {',
        replace: '    } else if (silentMs !== undefined && nowMs - this.#run.lastEventMs >= 100 * silentMs) {',
      },
    ],
  },
  {
    name: 'no-first-content-timeout',
    story: 'A provider that never answers is waited for until the whole request times out.',
    patches: [
      {
        file: attempt,
        find: '    if (this.target.timeouts !== undefined) this.#setDeadline(this.target.timeouts, mayLeave)\n',
        replace: '',
      },
    ],
  },
  {
    name: 'places-not-given-back',
    story: 'A closed connection keeps its place, until no call gets one.',
    patches: [{ file: 'providers/http/pool.ts', find: '    this.#share.give()\n', replace: '' }],
  },
  {
    name: 'body-of-a-closed-request',
    story: 'The body of a client that disconnected during authentication is waited for: found by this simulation.',
    patches: [
      { file: 'http/read-body.ts', find: '    if (request.destroyed) this.#fail(endedEarly())\n', replace: '' },
    ],
  },
]

import type { Invariant } from '../evidence.ts'

/** What remains when all faults have ended. */
export const restInvariants: readonly Invariant[] = [
  {
    id: 'I18',
    sentence: 'At rest, nothing is held: no request, connection, share, or waiting call.',
    *check({ atRest: { openRequests, waitingForConnection, lostPlaces, waitingCalls, heldShares } }) {
      if (openRequests > 0) yield `${openRequests} requests are open`
      if (waitingForConnection > 0) yield `${waitingForConnection} calls wait for a connection`
      if (lostPlaces !== 0) yield `${lostPlaces} places of closed connections are taken`
      if (waitingCalls > 0) yield `${waitingCalls} calls wait for the database`
      if (heldShares.length > 0) yield `still held: ${heldShares.join(', ')}`
    },
  },
  {
    id: 'I21',
    sentence: 'Once all faults have ended, a client that has quota left and waits as told gets an answer.',
    *check({ finalExchange }) {
      if (finalExchange === undefined) return
      const { status, body } = finalExchange.response
      if (status !== 200 && status !== 402) yield `request ${finalExchange.number}: ${status} ${body.slice(0, 300)}`
    },
  },
]

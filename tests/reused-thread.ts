import { type MessagePort, parentPort } from 'node:worker_threads'
import { DatabaseServer } from '../src/storage/sqlite/database-server.ts'
import type { WorkerStart } from '../src/storage/sqlite/sqlite-messages.ts'

// The body of the threads of tests/reused-threads.ts.
if (parentPort === null) throw new Error('this file is the body of a worker thread')
const owner = parentPort
owner.on('message', ({ port, start }: { readonly port: MessagePort; readonly start: WorkerStart }) => {
  port.once('close', () => owner.postMessage('closed', []))
  void new DatabaseServer(port, start)
})

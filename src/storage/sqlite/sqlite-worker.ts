import { parentPort, workerData } from 'node:worker_threads'
import { DatabaseServer } from './database-server.ts'
import type { WorkerStart } from './sqlite-messages.ts'

// The body of the database thread.
if (parentPort === null) throw new Error('this file is the body of a worker thread')
void new DatabaseServer(parentPort, workerData as WorkerStart)

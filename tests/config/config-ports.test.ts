import { expect, test } from 'vitest'
import { errorOf, loadText } from './config-load.ts'

test.each([
  ['listen: {port: 9000}\nmetrics_listen: {port: 9000}', 'metrics_listen.port and listen.port are both 9000'],
  ['listen: {port: 9000}\napp_listen: {port: 9000}', 'app_listen.port and listen.port are both 9000'],
  ['listen: {port: 9463}\nmetrics_listen: {}', 'metrics_listen.port and app_listen.port are both 9464'],
  [
    'listen: {port: 9000}\nmetrics_listen: {host: 0.0.0.0, port: 9000}',
    'metrics_listen.port and listen.port are both 9000',
  ],
  [
    'listen: {host: 0.0.0.0, port: 9000}\nmetrics_listen: {host: localhost, port: 9000}',
    'metrics_listen.port and listen.port are both 9000',
  ],
  [
    'listen: {host: 0.0.0.0, port: 9000}\nmetrics_listen: {host: "::", port: 9000}',
    'metrics_listen.port and listen.port are both 9000',
  ],
])('two addresses that cannot both be listened on are a problem: %j', (text, what) => {
  expect(errorOf(text).problems.map((problem) => problem.what)).toEqual([what])
})

test.each([
  'listen: {port: 0}\napp_listen: {port: 0}\nmetrics_listen: {port: 0}',
  'listen: {host: 0.0.0.0, port: 9000}\nmetrics_listen: {host: "::1", port: 9000}',
  'listen: {host: 127.0.0.2, port: 9000}\nmetrics_listen: {host: 127.0.0.1, port: 9000}',
])('addresses that can both be listened on are accepted: %j', (text) => {
  expect(() => loadText(text)).not.toThrow()
})

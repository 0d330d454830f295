import { setTimeout as sleep } from 'node:timers/promises'
import { firstRun, type FirstRun } from '../../accounts/identity/first-run.ts'
import type { Config } from '../../config/config.ts'
import { frontierId } from '../../domain/profiles.ts'
import { withoutEndSlashes } from '../../runtime/end-slashes.ts'
import { quoteForShell } from '../../runtime/quote-for-shell.ts'
import type { Secret } from '../../runtime/secret.ts'
import { readVersion } from '../../runtime/version.ts'
import type { Command, Invocation, Result } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import type { RunningApp } from '../ports.ts'
import { firstKeyFile, firstKeyName } from '../process/first-key-file.ts'
import { announceRunning } from '../process/running-file.ts'
import type { Piece } from '../terminal/safe-terminal.ts'
import { port } from '../value-shapes.ts'

/** How long a start waits for a database that does not answer, and how often it asks, milliseconds (contract 36.17). */
const databaseWaitMs = 60_000
const askEveryMs = 500

export const start: Command = {
  name: 'start',
  summary:
    'Run the service. In local mode (the default; see mode in the configuration), the first run creates an account and a key, and simulated providers answer if no backends are configured.',
  arguments: [],
  needsCredentials: true,
  options: [
    {
      name: 'port',
      value: 'PORT',
      shape: port,
      summary: 'The port of the API. Default: listen.port in the configuration, or 8787.',
    },
    {
      name: 'app-port',
      value: 'PORT',
      shape: port,
      summary: "The port of the web app. Default: app_listen.port in the configuration, or the API's port plus one.",
    },
    {
      name: 'host',
      value: 'HOST',
      summary:
        'The address that the API and, unless app_listen.host is set, the web app listen on. Default: listen.host in the configuration, or 127.0.0.1 (this machine only).',
    },
  ],
  example: 'start --port 8787 --data ./data',
  async run(invocation) {
    const { ports } = invocation
    if (ports.worker !== undefined) return serve(invocation, () => Promise.resolve())
    const first = await onceReachable(invocation, () =>
      invocation.withStore(
        async ({ config, changes }) =>
          config.mode === 'local' ? firstRun(changes, config, firstKeyFile(config.dataDir)) : undefined,
        { none: 'make' },
      ),
    )
    return serve(invocation, async ({ config }) => {
      const link = first === undefined ? undefined : await makeLink(invocation, first, config.appUrl)
      announce(invocation, config, first, link)
    })
  },
}

/** Runs the service until it stops or is told to. `onStarted` announces it. */
async function serve(invocation: Invocation, onStarted: (app: RunningApp) => Promise<void>): Promise<Result> {
  const { ports, terminal } = invocation
  const app = await onceReachable(invocation, () => ports.startApp(invocation.config ?? invocation.load()))
  const asked = new Promise<void>((resolve) => terminal.onStop(resolve))
  try {
    const takeBack = ports.worker !== undefined ? undefined : announceRunning(app.config.dataDir, app.config)
    await onStarted(app)
    try {
      await Promise.race([app.stopped, asked])
    } finally {
      takeBack?.()
    }
  } finally {
    await app.stop()
  }
  return { text: '', json: undefined, talk: ['Stopped.'], exitCode: exitCodes.ok }
}

/** Repeats a step of the start while the database does not answer: it may be starting, or changing its primary (contract 36.17). */
async function onceReachable<Value>({ ports, terminal }: Invocation, step: () => Promise<Value>): Promise<Value> {
  const giveUpMs = ports.clock.monotonicMs() + databaseWaitMs
  for (let tries = 0; ; tries += 1) {
    try {
      return await step()
    } catch (error) {
      const isUnreachable = error instanceof CommandError && error.exitCode === exitCodes.unreachable
      if (!isUnreachable || ports.clock.monotonicMs() >= giveUpMs) throw error
      if (tries === 0) terminal.err(`note: ${error.message}; waiting for it for up to ${databaseWaitMs / 1000} s`)
      await sleep(askEveryMs)
    }
  }
}

/** Creates a sign-in link for the local account, so that no email is needed to get started. */
function makeLink(invocation: Invocation, { account }: FirstRun, appUrl: string): Promise<Secret> {
  return invocation.withStore(({ signInLink }) => signInLink(account.id, appUrl), { none: 'make' })
}

function announce(invocation: Invocation, config: Config, first: FirstRun | undefined, link: Secret | undefined): void {
  const { terminal, line } = invocation
  const keyPath = `${withoutEndSlashes(config.dataDir)}/${firstKeyName}`
  const curl = writeCurl(
    config,
    first?.fileKeyWorks === true ? `$(cat ${quoteForShell(keyPath)})` : '$SVC_ROUTER_API_KEY',
  )
  if (line.flag('json')) {
    terminal.json({
      ready: true,
      base_url: config.baseUrl,
      app_url: config.appUrl,
      sign_in_url: link?.reveal(),
      first_run: first?.key !== undefined,
      key: first?.key?.reveal(),
      curl,
    })
    return
  }
  const bold = (text: string): Piece => ({ style: 'bold', text })
  const head: Piece[] = [bold(`svc-router ${readVersion()}`)]
  if (first?.key !== undefined)
    head.push(
      `\n  created    account "${first.account.name}" on plan ${first.account.planId}, data folder ${config.dataDir}`,
    )
  const simulated = config.backends.filter((backend) => backend.simulated).map((backend) => backend.id)
  if (simulated.length > 0)
    head.push(`\n  simulated  ${simulated.join(', ')}: not real models, and each answer says so`)
  head.push('\n  ready      ', bold(config.baseUrl), '\n  web app    ', bold(config.appUrl), '\n')
  const lines: string[] = []
  if (link !== undefined)
    lines.push('', '  Sign in with this link. It works once, within 15 minutes:', `    ${link.reveal()}`)
  if (first?.key !== undefined)
    lines.push(
      '',
      `  Your first key, shown only once (stored in ${keyPath}, readable only by your user):`,
      `    ${first.key.reveal()}`,
    )
  if (first?.fileKeyWorks === false)
    lines.push(
      '',
      `  The key in ${keyPath} is missing or no longer works. Create a new one: ${invocation.command('keys create')}`,
    )
  if (first === undefined) lines.push('', `  Accounts and keys: ${invocation.command('accounts create NAME')}`)
  lines.push(
    '',
    '  Try it:',
    `    ${curl}`,
    '',
    `  Connect a real model: ${invocation.command('upstream add PROVIDER --model MODEL')}`,
    `  Use your agent:       ${invocation.command('run codex')}   (or claude, opencode; does not change their configuration files)`,
  )
  terminal.out(...head, lines.join('\n'))
}

/** A curl command that works when pasted. */
function writeCurl(config: Config, key: string): string {
  const body = JSON.stringify({ model: frontierId, messages: [{ role: 'user', content: 'Hello!' }] })
  return `curl -i ${quoteForShell(`${config.baseUrl}/chat/completions`)} -H "authorization: Bearer ${key}" -H 'content-type: application/json' -d '${body}'`
}

// The playground. The conversation exists only in this page and is sent with each chat completions request.

import { Answer, thought } from './playground-answer.js'
import { curlOf, javascriptOf, pythonOf } from './playground-code.js'
import { ImageField, readFields, userTurn, withoutImageData } from './playground-fields.js'
import { at, linked, make, pretty } from './playground-make.js'
import { markdown, plainText } from './playground-markdown.js'
import { showEnd, showHeaders, showSent } from './playground-trail.js'

/** @import { ChatMessage, ChatRequest, Failure, PlaygroundSettings, ToolCall, Turn } from '../playground-types.ts' */

/** Longer answers are truncated for screen readers. */
const maxSpokenCharacters = 1000

const panes = /** @type {HTMLElement} */ (document.querySelector('[data-playground]'))
/** @type {PlaygroundSettings} */
const settings = JSON.parse(panes.dataset['playground'] ?? '')
const profile = at('profile', HTMLSelectElement)
const [stream, fusion, raw] = [checkbox('stream'), checkbox('fusion'), checkbox('raw')]
const [system, tools, message] = [textarea('system'), textarea('tools'), textarea('message')]
const fields = [profile, stream, fusion, system, tools, message, at('temperature'), at('max-tokens')]
const [turnList, trouble, stopButton, spoken] = [at('turns'), at('trouble'), at('stop'), at('said')]

/**
 * The conversation.
 * @type {Turn[]}
 */
let turns = []
const image = new ImageField(
  () => turns.reduce((sum, turn) => sum + (turn.image?.bytes ?? 0), 0),
  () => showCode(),
)
/**
 * Aborts the request in progress, if any.
 * @type {AbortController | undefined}
 */
let running
/**
 * The same for the latest request, also after it has ended.
 * @type {AbortController | undefined}
 */
let latest
/**
 * Tool calls of the latest answer without a result.
 * @type {readonly ToolCall[]}
 */
let openCalls = []

/** @param {string} id */
function checkbox(id) {
  return at(id, HTMLInputElement)
}

/** @param {string} id */
function textarea(id) {
  return at(id, HTMLTextAreaElement)
}

/** @param {ToolCall} call */
const nameOf = (call) => call[call.type]?.name ?? 'a tool'
const isFusing = () => profile.value === settings.fusionId || fusion.checked
const isLocked = () => !settings.isPremium && settings.premiumProfiles.includes(profile.value)

/**
 * Announces a text to screen readers; not used for each piece of a streamed answer.
 * @param {string} text
 */
function say(text) {
  spoken.textContent = text
}

// Building the request.

/**
 * The request for these messages; undefined if a field is invalid.
 * @param {ChatMessage[]} messages
 * @returns {ChatRequest | undefined}
 */
function requestOf(messages) {
  const { tools: list, limits } = readFields()
  if (list === undefined) return undefined
  const { fusionToolType: type } = settings
  // Includes the analysis, so that the page can show consensus and disagreements.
  const ours = { type, parameters: { include: ['analysis'] } }
  const all =
    isFusing() && !list.some((tool) => /** @type {{ type?: unknown } | null} */ (tool)?.type === type)
      ? [...list, ours]
      : list
  const first = system.value.trim()
  /** @type {ChatMessage[]} */
  const instructions = first === '' ? [] : [{ role: 'system', content: first }]
  return {
    model: profile.value,
    messages: [...instructions, ...messages],
    ...(all.length > 0 && { tools: all }),
    ...limits,
    ...(stream.checked && { stream: true, stream_options: { include_usage: true } }),
  }
}

function showCode() {
  const next = openCalls.length > 0 ? [] : [userTurn(message.value.trim() || 'Hello!', image.value)]
  const asked = requestOf([...turns, ...next].map(({ said }) => said))
  if (asked === undefined) return
  const body = withoutImageData(asked)
  at('curl').textContent = curlOf(body, settings)
  at('python').textContent = pythonOf(body, settings)
  at('javascript').textContent = javascriptOf(body, settings)
}

// Rendering the conversation.

/** @type {Record<string, string>} */
const who = { user: 'You', assistant: 'Answer', tool: 'Tool result' }

/** @param {Turn} turn @param {number} index */
function turnElement(turn, index) {
  const { said, thoughts, broken, image: sent } = turn
  const { role, tool_calls: calls = [] } = said
  const content = textOf(turn)
  return make(
    'li',
    { class: `turn ${role}` },
    make(
      'p',
      { class: 'who' },
      who[role],
      broken && make('span', { class: 'tag warn' }, broken),
      role === 'user' && running === undefined ? changeButton(index, content) : '',
    ),
    thoughts && thought(thoughts, false),
    content && make('div', { class: 'said' }, ...shownText(role, content)),
    sent && make('p', { class: 'hint' }, `With the image ${sent.name}`),
    ...calls.map(callElement),
  )
}

/** @param {Turn} turn @returns {string} */
const textOf = ({ text, said }) => text ?? (typeof said.content === 'string' ? said.content : '')

/**
 * Renders answers as Markdown or raw text; other turns as plain text.
 * @param {string} role
 * @param {string} text
 */
function shownText(role, text) {
  return role === 'assistant' && !raw.checked ? markdown(text) : [plainText(text)]
}

/** Renders the texts again and keeps form input between them. */
function showTexts() {
  for (const [index, turn] of turns.entries())
    turnList.children[index]?.querySelector('.said')?.replaceChildren(...shownText(turn.said.role, textOf(turn)))
}

/** @param {number} index @param {string} content */
function changeButton(index, content) {
  const which = make('span', { class: 'unseen' }, ` “${content.slice(0, 40)}”`)
  return make('button', { type: 'button', class: 'quiet', on: () => takeBack(index) }, 'Change', which)
}

/** @param {ToolCall} call */
function callElement(call) {
  const given = call.function?.arguments ?? call.custom?.input
  const name = make('code', {}, nameOf(call))
  return make('div', { class: 'call' }, make('p', {}, 'Calls ', name), make('pre', {}, pretty(given)))
}

/**
 * Removes the turn at `index` and all later ones, and puts its text back into the message field.
 * @param {number} index
 */
function takeBack(index) {
  const turn = turns[index]
  message.value = turn?.text ?? ''
  turns = turns.slice(0, index)
  image.value = turn?.image
  settle()
}

/** Ends pending input, so that the next message can be written. */
function settle() {
  openCalls = []
  trouble.replaceChildren()
  show()
  message.focus()
}

function show() {
  turnList.replaceChildren(...turns.map((turn, index) => turnElement(turn, index)))
  if (openCalls.length > 0) turnList.append(make('li', { class: 'turn tool' }, resultForm()))
  at('ask').hidden = openCalls.length > 0
  at('anew').hidden = turns.length === 0 || running !== undefined
  stopButton.hidden = running === undefined
  showLock()
  showCode()
}

function showLock() {
  const isHeld = isLocked()
  at('send').hidden = isHeld || running !== undefined
  at('locked').hidden = !isHeld
  at('locked-profile').textContent = profile.value
}

/** Shows a field for the result of each tool call; submitting continues the conversation. */
function resultForm() {
  const results = openCalls.map((call, index) => {
    const id = `result-${index}`
    const field = make('textarea', { id, rows: '2', spellcheck: 'false', class: 'json' })
    const label = make('label', { for: id }, `Result of ${nameOf(call)}`)
    return { call, field, element: make('div', { class: 'field' }, label, field) }
  })
  const send = make('button', {}, results.length === 1 ? 'Send the result' : 'Send the results')
  const form = make('form', {}, ...results.map(({ element }) => element), send)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const { wrong } = readFields()
    if (wrong !== undefined) return wrong.focus()
    for (const { call, field } of results)
      turns.push({ said: { role: 'tool', tool_call_id: call.id, content: field.value } })
    openCalls = []
    return void ask()
  })
  return form
}

// Sending a request.

/** Sends the conversation and shows the answer. The fields are already validated. */
async function ask() {
  const body = requestOf(turns.map(({ said }) => said))
  if (body === undefined) return
  const isFused = isFusing()
  const request = new AbortController()
  running = latest = request
  const startedAt = performance.now()
  const answer = new Answer(isFused ? 'The models are working…' : 'Waiting for the answer…', isFused ? say : () => {})
  trouble.replaceChildren()
  show()
  showSent(`${settings.baseUrl}/chat/completions`, withoutImageData(body), isFused)
  if (isFused && checkbox('look-0').checked) checkbox('look-1').checked = true
  turnList.append(answer.element)
  stopButton.focus()
  say(`Request sent to ${body.model}.`)
  const { response, failure } = await exchange(body, answer, request.signal)
  const tookMs = performance.now() - startedAt
  running = undefined
  const turn = answer.turn(failure)
  if (turn !== undefined) turns.push(turn)
  openCalls = (failure === undefined && turn?.said.tool_calls) || []
  const isLeft = document.activeElement !== stopButton && document.activeElement !== document.body
  show()
  tell(failure, turn)
  /** @type {HTMLElement | null} */
  const action = trouble.querySelector('a, button')
  if (!isLeft) (turnList.querySelector('textarea') ?? action ?? message).focus()
  await showEnd(response, answer, { tookMs, isFused, isCurrent: () => latest === request })
}

/**
 * The response, if any, and the error it ended with, if any.
 * @param {ChatRequest} body
 * @param {Answer} answer
 * @param {AbortSignal} signal
 * @returns {Promise<{ response: Response | undefined, failure: Failure | undefined }>}
 */
async function exchange(body, answer, signal) {
  const headers = { 'content-type': 'application/json', 'x-csrf-token': settings.csrf }
  let response
  try {
    response = await fetch('/playground/chat', { method: 'POST', headers, body: JSON.stringify(body), signal })
    showHeaders(response)
    return { response, failure: await answer.read(response) }
  } catch {
    const message =
      response === undefined
        ? 'The connection was lost before an answer began. Check your network, then send the message again.'
        : 'The connection was lost. The answer is incomplete.'
    return { response, failure: signal.aborted ? { isStopped: true } : { message } }
  }
}

/** @param {Failure | undefined} failure @param {Turn | undefined} turn */
function tell(failure, turn) {
  if (failure?.isStopped) return say('Stopped.')
  if (failure !== undefined) {
    say('')
    return trouble.replaceChildren(troubleElement(failure))
  }
  const calls = openCalls.map(nameOf).join(', ')
  if (calls !== '') return say(`The model calls ${calls} and waits for your results.`)
  return say(`Answer: ${turn === undefined ? '' : textOf(turn).slice(0, maxSpokenCharacters)}`)
}

/**
 * The API's error message with its link, and the available actions.
 * @param {Failure} failure
 */
function troubleElement({ message: text, code, request_id: id }) {
  const again = make('button', { type: 'button', class: 'secondary', on: sendAgain }, 'Send it again')
  const about = code && make('a', { href: `/docs/errors/${encodeURIComponent(code)}` }, `About ${code}`)
  const actions = make('p', { class: 'actions' }, again, about, id && make('code', {}, id))
  return make('div', { class: 'problem', role: 'alert' }, make('p', {}, ...linked(text ?? '')), actions)
}

/** Sends the same request again, without the partial answer. */
function sendAgain() {
  if (running !== undefined) return
  const { wrong } = readFields()
  if (wrong !== undefined) {
    wrong.focus()
    return
  }
  if (turns.at(-1)?.broken !== undefined) turns.pop()
  void ask()
}

// User actions.

const example = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The current weather in a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}

at('ask').addEventListener('submit', (event) => {
  event.preventDefault()
  const content = message.value.trim()
  if (running !== undefined || isLocked()) return undefined
  if (content === '') return message.focus()
  const { wrong } = readFields()
  if (wrong !== undefined) return wrong.focus()
  turns.push(userTurn(content, image.value))
  message.value = ''
  image.value = undefined
  return void ask()
})
message.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) at('ask', HTMLFormElement).requestSubmit()
})
stopButton.addEventListener('click', () => running?.abort())
raw.addEventListener('change', showTexts)
at('anew').addEventListener('click', () => {
  turns = []
  settle()
})
at('example').addEventListener('click', () => {
  tools.value = JSON.stringify([example], null, 2)
  showCode()
  tools.focus()
})
for (const field of fields) {
  field.addEventListener('input', () => {
    showLock()
    showCode()
  })
}

// Makes scrollable elements usable with the keyboard.
for (const sample of panes.querySelectorAll('.sample pre')) sample.setAttribute('tabindex', '0')
panes.hidden = false
show()

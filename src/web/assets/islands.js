// Progressive enhancement: pages work without it (contract 20.4). Each island is found by its attribute.

/** How long a button shows "Copied". */
const saidMs = 2000

/** @type {NodeListOf<HTMLButtonElement>} */
const copyButtons = document.querySelectorAll('button[data-copy]')
for (const button of copyButtons) {
  const source = document.getElementById(button.dataset['copy'] ?? '')
  // Browsers have a clipboard only on secure pages.
  if (source === null || !('clipboard' in navigator)) continue
  button.hidden = false
  button.addEventListener('click', async () => {
    const name = button.textContent
    try {
      await navigator.clipboard.writeText(source.textContent.trim())
      button.textContent = 'Copied'
    } catch {
      // Clipboard access was denied: select the text, so that the user can copy it.
      getSelection()?.selectAllChildren(source)
      button.textContent = 'Selected'
    }
    setTimeout(() => {
      button.textContent = name
    }, saidMs)
  })
}

// Passkeys: the browser's response is submitted like any other form.
/** @type {NodeListOf<HTMLFormElement>} */
const passkeyForms = document.querySelectorAll('form[data-passkey]')
for (const form of passkeyForms) {
  if (window.PublicKeyCredential?.parseRequestOptionsFromJSON === undefined) continue
  form.hidden = false
  form.addEventListener('submit', async (event) => {
    const answer = /** @type {HTMLInputElement} */ (form.elements.namedItem('answer'))
    if (answer.value !== '') return
    event.preventDefault()
    const options = JSON.parse(form.dataset['options'] ?? '')
    try {
      const credential =
        form.dataset['passkey'] === 'get'
          ? await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) })
          : await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
      answer.value = JSON.stringify(/** @type {PublicKeyCredential} */ (credential).toJSON())
      form.submit()
    } catch {
      // The user canceled or has no passkey for this site: show that and keep the page.
      const button = form.querySelector('button')
      if (button !== null) button.textContent = 'No passkey was used. Try again'
    }
  })
}

/** Poll interval of a waiting page, and when to stop polling and leave it to the link. */
const askEveryMs = 2000
const askForMs = 15 * 60_000

/** @type {NodeListOf<HTMLElement>} */
const waitingElements = document.querySelectorAll('[data-wait]')
for (const waiting of waitingElements) {
  const [said, again] = /** @type {Iterable<HTMLElement>} */ (waiting.children)
  if (said === undefined || again === undefined) continue
  const until = Date.now() + askForMs
  const ask = async () => {
    if (!document.hidden) {
      try {
        const response = await fetch(waiting.dataset['wait'] ?? '', { headers: { accept: 'application/json' } })
        if (!response.ok) return
        const { arrived, text } = await response.json()
        if (said.textContent !== text) said.textContent = text
        waiting.classList.toggle('good', arrived)
        again.hidden = arrived
        if (arrived) return
      } catch {
        // The service may be restarting or the network unavailable; try again at the next poll.
      }
    }
    if (Date.now() < until) setTimeout(ask, askEveryMs)
  }
  if (!waiting.classList.contains('good')) setTimeout(ask, askEveryMs)
}

// Keeps the figures of a page current: the texts of its cells by name, as JSON.
const renewEveryMs = 5000
/** @type {NodeListOf<HTMLElement>} */
const liveElements = document.querySelectorAll('[data-live]')
for (const live of liveElements) {
  /** @type {NodeListOf<HTMLElement>} */
  const cells = live.querySelectorAll('[data-figure]')
  const renew = async () => {
    if (!document.hidden) {
      try {
        const response = await fetch(live.dataset['live'] ?? '', { headers: { accept: 'application/json' } })
        // The session has ended: the last figures stay, and the link leads to the sign-in.
        if (!response.ok || response.redirected) return
        const texts = await response.json()
        for (const cell of cells) {
          const text = texts[cell.dataset['figure'] ?? '']
          if (typeof text === 'string' && cell.textContent !== text) cell.textContent = text
        }
      } catch {
        // The service may be restarting or the network unavailable; try again later.
      }
    }
    setTimeout(renew, renewEveryMs)
  }
  setTimeout(renew, renewEveryMs)
}

// Detects secrets in support messages before they leave the browser, with the server's patterns.
/** @type {NodeListOf<HTMLFormElement>} */
const checkedForms = document.querySelectorAll('form[data-forbidden]')
for (const form of checkedForms) {
  /** @type {ReturnType<typeof import('../../domain/forbidden-text.ts').forbiddenAsData>} */
  const { harmless, exact, guessed } = JSON.parse(form.dataset['forbidden'] ?? '')
  const text = /** @type {HTMLTextAreaElement} */ (form.elements.namedItem('text'))
  const id = /** @type {HTMLInputElement} */ (form.elements.namedItem('request_id'))
  const said = form.querySelector('#text-found')
  /** @param {typeof exact} shapes @param {string} where */
  const kindsIn = (shapes, where) =>
    shapes.filter(([, source = '', flags]) => where.search(new RegExp(source, flags)) >= 0).map(([kind]) => kind)
  const look = () => {
    const all = `${text.value}\n${id.value}`
    let rest = all
    for (const [source = '', flags] of harmless) rest = rest.replace(new RegExp(source, flags), ' ')
    const kinds = [...kindsIn(exact, all), ...kindsIn(guessed, rest)]
    const sentence =
      kinds.length === 0
        ? ''
        : `This appears to contain ${[...new Set(kinds)].join(', ')}. Remove it; nothing was sent.`
    if (said !== null && said.textContent !== sentence) said.textContent = sentence
    return kinds.length > 0
  }
  form.addEventListener('input', look)
  form.addEventListener('submit', (event) => {
    if (!look()) return
    event.preventDefault()
    text.focus()
  })
}

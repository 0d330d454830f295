// What pages can do besides: nothing here is needed. Each island is found by its attribute.

/** How long a button says that it has copied. */
const saidMs = 2000

for (const button of document.querySelectorAll('button[data-copy]')) {
  if (navigator.clipboard === undefined) continue
  button.hidden = false
  button.addEventListener('click', async () => {
    const source = document.getElementById(button.dataset.copy)
    const name = button.textContent
    try {
      await navigator.clipboard.writeText(source.textContent.trim())
      button.textContent = 'Copied'
    } catch {
      // The browser does not let us: the text is selected, so that one key copies it.
      getSelection().selectAllChildren(source)
      button.textContent = 'Selected'
    }
    setTimeout(() => {
      button.textContent = name
    }, saidMs)
  })
}

// Passkeys: the browser asks for a touch, and what it answers is sent like any other form.
for (const form of document.querySelectorAll('form[data-passkey]')) {
  if (window.PublicKeyCredential?.parseRequestOptionsFromJSON === undefined) continue
  form.hidden = false
  form.addEventListener('submit', async (event) => {
    const { answer } = form.elements
    if (answer.value !== '') return
    event.preventDefault()
    const options = JSON.parse(form.dataset.options)
    try {
      const credential =
        form.dataset.passkey === 'get'
          ? await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) })
          : await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
      answer.value = JSON.stringify(credential.toJSON())
      form.submit()
    } catch {
      // Nobody touched anything, or there is none for this site: the page stays as it is, and says so.
      form.querySelector('button').textContent = 'No passkey was used. Try again'
    }
  })
}

/** How often a page that waits asks, and for how long before it leaves it to its link. */
const askEveryMs = 2000
const askForMs = 15 * 60_000

for (const waiting of document.querySelectorAll('[data-wait]')) {
  const [said, again] = waiting.children
  const until = Date.now() + askForMs
  const ask = async () => {
    if (!document.hidden) {
      try {
        const response = await fetch(waiting.dataset.wait, { headers: { accept: 'application/json' } })
        if (!response.ok) return
        const { arrived, text } = await response.json()
        if (said.textContent !== text) said.textContent = text
        waiting.classList.toggle('good', arrived)
        again.hidden = arrived
        if (arrived) return
      } catch {
        // The service restarts, or the network is gone: the next time may find it.
      }
    }
    if (Date.now() < until) setTimeout(ask, askEveryMs)
  }
  if (!waiting.classList.contains('good')) setTimeout(ask, askEveryMs)
}

// What must not be told to support is found before it leaves the browser, by the shapes that the server has.
for (const form of document.querySelectorAll('form[data-forbidden]')) {
  const { harmless, exact, guessed } = JSON.parse(form.dataset.forbidden)
  const { text, request_id: id } = form.elements
  const said = form.querySelector('#text-found')
  const kindsIn = (shapes, where) =>
    shapes.filter(([, source, flags]) => where.search(new RegExp(source, flags)) >= 0).map(([kind]) => kind)
  const look = () => {
    const all = `${text.value}\n${id.value}`
    let rest = all
    for (const [source, flags] of harmless) rest = rest.replace(new RegExp(source, flags), ' ')
    const kinds = [...kindsIn(exact, all), ...kindsIn(guessed, rest)]
    const sentence =
      kinds.length === 0 ? '' : `This seems to hold ${[...new Set(kinds)].join(', ')}. Take it out; it was not sent.`
    if (said.textContent !== sentence) said.textContent = sentence
    return kinds.length > 0
  }
  form.addEventListener('input', look)
  form.addEventListener('submit', (event) => {
    if (!look()) return
    event.preventDefault()
    text.focus()
  })
}

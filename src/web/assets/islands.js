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

// Validates the request fields before sending.

import { at, make } from './playground-make.js'

/** Most bytes of all images in a conversation, so that they fit into one request as data URLs. */
const maxImageBytes = 2_500_000
const imageTypes = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']
const kilobytes = (bytes) => `${Math.ceil(bytes / 1000).toLocaleString('en-GB')} kB`

/** Shows or clears the error below a field. */
function tell(field, problem) {
  const place = at(`${field.id}-wrong`)
  if (place.textContent !== problem) place.textContent = problem
  if (problem === '') field.removeAttribute('aria-invalid')
  else field.setAttribute('aria-invalid', 'true')
  return problem === ''
}

/** The entered tools; undefined, with an error on the page, if they are not a JSON array. */
function readTools() {
  let list
  let problem = ''
  try {
    list = JSON.parse(at('tools').value.trim() || '[]')
    if (!Array.isArray(list)) problem = 'This is JSON but not an array. Put it between [ and ].'
  } catch (error) {
    problem = `This is not JSON: ${error.message}`
  }
  return tell(at('tools'), problem) ? list : undefined
}

/** The number in a field; `null` if it is empty; undefined, with an error on the page, if it is invalid. */
function readNumber(id, shape, problem) {
  const field = at(id)
  const text = field.value.trim()
  const value = Number(text)
  const isRight =
    text === '' || (shape.test(text) && value >= Number(field.dataset.min) && value <= Number(field.dataset.max))
  if (!tell(field, isRight ? '' : problem)) return undefined
  return text === '' ? null : value
}

/** The request parameters from the fields, or the invalid field. */
export function readFields() {
  const tools = readTools()
  const temperature = readNumber('temperature', /^\d(?:\.\d{1,3})?$/, 'Enter a number from 0 to 2, such as 0.7.')
  const maxTokens = readNumber('max-tokens', /^\d{1,7}$/, 'Enter a whole number from 1 to 1000000.')
  const wrong = [
    ['tools', tools],
    ['temperature', temperature],
    ['max-tokens', maxTokens],
  ].find(([, value]) => value === undefined)
  if (wrong !== undefined) return { wrong: at(wrong[0]) }
  return {
    tools,
    limits: {
      ...(temperature !== null && { temperature }),
      ...(maxTokens !== null && { max_completion_tokens: maxTokens }),
    },
  }
}

/** The image attached to the next message. */
export class ImageField {
  #field = at('image')
  #image
  #onChange
  /** Bytes of images already in the conversation. */
  #sentBytes

  constructor(sentBytes, onChange) {
    this.#sentBytes = sentBytes
    this.#onChange = onChange
    this.#field.addEventListener('change', () => void this.#read())
  }

  get value() {
    return this.#image
  }

  set value(image) {
    this.#show(image)
  }

  #show(image) {
    this.#image = image
    const remove = () => {
      this.#show(undefined)
      this.#field.focus()
    }
    const name = image && `${image.name}, ${kilobytes(image.bytes)} `
    const button = image && make('button', { type: 'button', class: 'quiet', on: remove }, 'Remove the image')
    at('attached').replaceChildren(...(image ? [name, button] : []))
    this.#onChange()
  }

  async #read() {
    const [file] = this.#field.files
    this.#field.value = ''
    if (file === undefined) return
    const room = maxImageBytes - this.#sentBytes()
    const problem = !imageTypes.includes(file.type)
      ? 'Choose a PNG, JPEG, WebP or GIF image.'
      : file.size > room
        ? `This image is ${kilobytes(file.size)}. The images of a conversation can be at most ${kilobytes(maxImageBytes)} together.`
        : ''
    if (!tell(this.#field, problem)) return
    try {
      this.value = { name: file.name, bytes: file.size, url: await dataUrlOf(file) }
    } catch {
      tell(this.#field, 'The browser could not read this file. Choose it again.')
    }
  }
}

function dataUrlOf(file) {
  const reader = new FileReader()
  return new Promise((resolve, reject) => {
    reader.addEventListener('load', () => resolve(reader.result))
    reader.addEventListener('error', () => reject(reader.error))
    reader.readAsDataURL(file)
  })
}

/** A user's message with its image. */
export function userTurn(text, image) {
  const content =
    image === undefined
      ? text
      : [
          { type: 'text', text },
          { type: 'image_url', image_url: { url: image.url } },
        ]
  return { said: { role: 'user', content }, text, image }
}

/** The body without image data, for display. */
export function withoutImageData(body) {
  const short = (part) =>
    part.type === 'image_url'
      ? { ...part, image_url: { url: `${part.image_url.url.split(',')[0]},IMAGE_IN_BASE64` } }
      : part
  const messages = body.messages.map((message) =>
    Array.isArray(message.content) ? { ...message, content: message.content.map(short) } : message,
  )
  return { ...body, messages }
}

// Validates the request fields before sending.

import { at, make } from './playground-make.js'

/** @import { AttachedImage, ChatMessage, ChatRequest, Turn } from '../playground-types.ts' */
/** @typedef {HTMLInputElement | HTMLTextAreaElement} Field */

/** Most bytes of all images in a conversation, so that they fit into one request as data URLs. */
const maxImageBytes = 2_500_000
const imageTypes = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']
/** @param {number} bytes */
const kilobytes = (bytes) => `${Math.ceil(bytes / 1000).toLocaleString('en-US')} kB`

/**
 * Shows or clears the error below a field. Returns whether there is none.
 * @param {Field} field
 * @param {string} problem
 */
function tell(field, problem) {
  const place = at(`${field.id}-wrong`)
  if (place.textContent !== problem) place.textContent = problem
  if (problem === '') field.removeAttribute('aria-invalid')
  else field.setAttribute('aria-invalid', 'true')
  return problem === ''
}

/**
 * The entered tools; undefined, with an error on the page, if they are not a JSON array.
 * @returns {unknown[] | undefined}
 */
function readTools() {
  const field = at('tools', HTMLTextAreaElement)
  let list
  let problem = ''
  try {
    list = JSON.parse(field.value.trim() || '[]')
    if (!Array.isArray(list)) problem = 'This is JSON but not an array. Put it between [ and ].'
  } catch (error) {
    problem = `This is not JSON: ${/** @type {Error} */ (error).message}`
  }
  return tell(field, problem) ? list : undefined
}

/**
 * The number in a field; `null` if it is empty; undefined, with an error on the page, if it is invalid.
 * @param {string} id
 * @param {RegExp} shape
 * @param {string} problem
 */
function readNumber(id, shape, problem) {
  const field = at(id, HTMLInputElement)
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
  const maxTokens = readNumber('max-tokens', /^\d{1,7}$/, 'Enter a whole number from 1 to 1,000,000.')
  if (tools === undefined) return { wrong: at('tools') }
  if (temperature === undefined) return { wrong: at('temperature') }
  if (maxTokens === undefined) return { wrong: at('max-tokens') }
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
  #field = at('image', HTMLInputElement)
  /** @type {AttachedImage | undefined} */
  #image
  #onChange
  /** Bytes of images already in the conversation. */
  #sentBytes

  /** @param {() => number} sentBytes @param {() => void} onChange */
  constructor(sentBytes, onChange) {
    this.#sentBytes = sentBytes
    this.#onChange = onChange
    this.#field.addEventListener('change', () => void this.#read())
  }

  get value() {
    return this.#image
  }

  /** @param {AttachedImage | undefined} image */
  set value(image) {
    this.#show(image)
  }

  /** @param {AttachedImage | undefined} image */
  #show(image) {
    this.#image = image
    const remove = () => {
      this.#show(undefined)
      this.#field.focus()
    }
    at('attached').replaceChildren()
    if (image !== undefined) {
      const button = make('button', { type: 'button', class: 'quiet', on: remove }, 'Remove the image')
      at('attached').append(`${image.name}, ${kilobytes(image.bytes)} `, button)
    }
    this.#onChange()
  }

  async #read() {
    const file = this.#field.files?.[0]
    this.#field.value = ''
    if (file === undefined) return
    const room = maxImageBytes - this.#sentBytes()
    const problem = !imageTypes.includes(file.type)
      ? 'Choose a PNG, JPEG, WebP, or GIF image.'
      : file.size > room
        ? `This image is ${kilobytes(file.size)}. The images in a conversation can be at most ${kilobytes(maxImageBytes)} in total.`
        : ''
    if (!tell(this.#field, problem)) return
    try {
      this.value = { name: file.name, bytes: file.size, url: await dataUrlOf(file) }
    } catch {
      tell(this.#field, 'The browser could not read this file. Choose it again.')
    }
  }
}

/** @param {File} file @returns {Promise<string>} */
function dataUrlOf(file) {
  const reader = new FileReader()
  return new Promise((resolve, reject) => {
    reader.addEventListener('load', () => resolve(/** @type {string} */ (reader.result)))
    reader.addEventListener('error', () => reject(reader.error))
    reader.readAsDataURL(file)
  })
}

/**
 * A user's message with its image.
 * @param {string} text
 * @param {AttachedImage | undefined} image
 * @returns {Turn}
 */
export function userTurn(text, image) {
  /** @type {ChatMessage['content']} */
  const content =
    image === undefined
      ? text
      : [
          { type: 'text', text },
          { type: 'image_url', image_url: { url: image.url } },
        ]
  return { said: { role: 'user', content }, text, image }
}

/**
 * The body without image data, for display.
 * @param {ChatRequest} body
 * @returns {ChatRequest}
 */
export function withoutImageData(body) {
  /** @param {Exclude<ChatMessage['content'], string | null>[number]} part */
  const short = (part) =>
    part.type === 'image_url'
      ? { ...part, image_url: { url: `${part.image_url.url.split(',')[0]},IMAGE_IN_BASE64` } }
      : part
  const messages = body.messages.map((message) =>
    Array.isArray(message.content) ? { ...message, content: message.content.map(short) } : message,
  )
  return { ...body, messages }
}

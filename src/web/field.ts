import { html } from 'hono/html'
import type { Html } from './layout.ts'

/** One field of a form with its label, what helps to fill it in, and what is wrong with what was. */
export interface Field {
  readonly name: string
  readonly label: string
  readonly hint?: string | Html | undefined
  readonly problem?: string | undefined
  readonly value?: string | undefined
  readonly type?: 'text' | 'email' | 'url' | 'password'
  readonly autocomplete?: 'email' | 'one-time-code' | 'off'
  /** For six digits. */
  readonly isCode?: boolean
  readonly optional?: boolean
  readonly maxCharacters?: number
  /** For whole numbers. */
  readonly isNumber?: boolean
}

/** Writes a field: the hint and the problem are read out with it. */
export function field(it: Field): Html {
  const { name, value = '', type = 'text', autocomplete = 'off' } = it
  return html`<div class="field">
    ${aboveField(name, it)}
    <input
      id="${name}"
      name="${name}"
      type="${type}"
      value="${value}"
      autocomplete="${autocomplete}"
      maxlength="${it.maxCharacters ?? 300}"
      ${it.isCode === true ? html`class="code"` : html`autocapitalize="off" spellcheck="false"`}
      ${it.isCode === true || it.isNumber === true ? html`inputmode="numeric"` : ''}
      ${howToFill(name, it)}
    />
  </div>`
}

/** The field of an address that a code goes to. */
export function emailField(value: string, problem: string | undefined): Html {
  return field({ name: 'email', label: 'Email address', type: 'email', autocomplete: 'email', value, problem })
}

/** The field of the six digits that a letter brought, also where spaces or dashes part them. */
export function codeField(problem: string | undefined): Html {
  return field({ name: 'code', label: 'Code', autocomplete: 'one-time-code', isCode: true, maxCharacters: 12, problem })
}

/** What is read before a field: its label, what helps, what is wrong. */
function aboveField(id: string, { label, hint, problem, optional }: Omit<Field, 'name'>): Html {
  return html`<label for="${id}"
      >${label}${optional === true ? html` <span class="faint">(optional)</span>` : ''}</label
    >
    ${hint === undefined ? '' : html`<span class="hint" id="${id}-hint">${hint}</span>`}
    ${problem === undefined ? '' : html`<span class="wrong" id="${id}-wrong">${problem}</span>`}`
}

/** The attributes that say so to whoever hears the page. */
function howToFill(id: string, { hint, problem, optional }: Omit<Field, 'name' | 'label'>): Html {
  const described = [hint === undefined ? '' : `${id}-hint`, problem === undefined ? '' : `${id}-wrong`]
  return html`${optional === true ? '' : 'required'}
  ${described.join('') === '' ? '' : html`aria-describedby="${described.join(' ').trim()}"`}
  ${problem === undefined ? '' : html`aria-invalid="true"`}`
}

/** One of several choices, as a radio button. */
export interface Choice {
  readonly value: string
  readonly label: string
  readonly hint?: string
}

/** Writes a question with its choices; the first is chosen unless another is said. */
export function choices(name: string, question: string, options: readonly Choice[], chosen = options[0]?.value): Html {
  return html`<fieldset>
    <legend>${question}</legend>
    ${options.map(
      ({ value, label, hint }) =>
        html`<label class="choice"
          ><input type="radio" name="${name}" value="${value}" ${value === chosen ? 'checked' : ''} />
          <span>${label}${hint === undefined ? '' : html`<span class="hint">${hint}</span>`}</span></label
        >`,
    )}
  </fieldset>`
}

/** Any of several choices, as boxes to tick. */
export interface Ticks {
  readonly name: string
  readonly question: string
  readonly hint: string
  readonly problem: string | undefined
  readonly options: readonly Choice[]
  readonly isTicked: (value: string) => boolean
}

/** Writes a question of which any number of choices may be ticked: each is a field of the same name. */
export function ticks({ name, question, hint, problem, options, isTicked }: Ticks): Html {
  return html`<fieldset aria-describedby="${name}-hint${problem === undefined ? '' : ` ${name}-wrong`}">
    <legend>${question}</legend>
    <span class="hint" id="${name}-hint">${hint}</span>
    ${problem === undefined ? '' : html`<span class="wrong" id="${name}-wrong">${problem}</span>`}
    ${options.map(
      (option) =>
        html`<label class="choice"
          ><input type="checkbox" name="${name}" value="${option.value}" ${isTicked(option.value) ? 'checked' : ''} />
          <span
            >${option.label}${option.hint === undefined ? '' : html`<span class="hint">${option.hint}</span>`}</span
          ></label
        >`,
    )}
  </fieldset>`
}

/** Several lines of text. */
export interface Lines extends Pick<Field, 'name' | 'label' | 'hint' | 'problem' | 'value' | 'optional'> {
  readonly rows: number
  readonly maxCharacters: number
  /** Where the page has several of that name. */
  readonly id?: string
}

/** Writes a field of several lines. */
export function lines(it: Lines): Html {
  const { name, value = '', rows, maxCharacters, id = name } = it
  return html`<div class="field">
    ${aboveField(id, it)}
    <textarea
      id="${id}"
      name="${name}"
      rows="${rows}"
      maxlength="${maxCharacters}"
      autocomplete="off"
      spellcheck="false"
      ${howToFill(id, it)}
    >
${value}</textarea>
  </div>`
}

/** One of several choices, in a list that opens; `id` where the page has several of that name. */
export function select(
  name: string,
  label: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string | undefined,
  id = name,
): Html {
  return html`<div class="field">
    <label for="${id}">${label}</label>
    <select id="${id}" name="${name}">
      ${options.map(
        ([value, text]) => html`<option value="${value}" ${value === chosen ? 'selected' : ''}>${text}</option>`,
      )}
    </select>
  </div>`
}

import { html } from 'hono/html'
import type { Html } from './html.ts'

/** A form field with its label, hint, and validation error. */
export interface Field {
  readonly name: string
  readonly label: string
  readonly hint?: string | Html | undefined
  readonly problem?: string | undefined
  readonly value?: string | undefined
  readonly type?: 'text' | 'email' | 'url' | 'password'
  readonly autocomplete?: 'email' | 'one-time-code' | 'off'
  /** For six-digit codes. */
  readonly isCode?: boolean
  readonly optional?: boolean
  readonly maxCharacters?: number
  /** For whole numbers. */
  readonly isNumber?: boolean
}

/** Renders a field. Screen readers announce the hint and the problem with it (contract 20.7). */
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

/** The email address field. */
export function emailField(value: string, problem: string | undefined): Html {
  return field({ name: 'email', label: 'Email address', type: 'email', autocomplete: 'email', value, problem })
}

/** The field for the six-digit code from an email; accepts spaces and dashes. */
export function codeField(problem: string | undefined): Html {
  return field({ name: 'code', label: 'Code', autocomplete: 'one-time-code', isCode: true, maxCharacters: 12, problem })
}

/** The label, hint, and problem above a field. */
function aboveField(id: string, { label, hint, problem, optional }: Omit<Field, 'name'>): Html {
  return html`<label for="${id}"
      >${label}${optional === true ? html` <span class="faint">(optional)</span>` : ''}</label
    >
    ${hint === undefined ? '' : html`<span class="hint" id="${id}-hint">${hint}</span>`}
    ${problem === undefined ? '' : html`<span class="wrong" id="${id}-wrong">${problem}</span>`}`
}

/** The accessibility attributes of a field. */
function howToFill(id: string, { hint, problem, optional }: Omit<Field, 'name' | 'label'>): Html {
  const described = [hint === undefined ? '' : `${id}-hint`, problem === undefined ? '' : `${id}-wrong`]
  return html`${optional === true ? '' : 'required'}
  ${described.join('') === '' ? '' : html`aria-describedby="${described.join(' ').trim()}"`}
  ${problem === undefined ? '' : html`aria-invalid="true"`}`
}

/** A radio button. */
export interface Choice {
  readonly value: string
  readonly label: string
  readonly hint?: string
}

/** Renders a group of radio buttons; the first is selected by default. */
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

/** A group of checkboxes. */
export interface Ticks {
  readonly name: string
  readonly question: string
  readonly hint: string
  readonly problem: string | undefined
  readonly options: readonly Choice[]
  readonly isTicked: (value: string) => boolean
}

/** Renders a group of checkboxes that share one field name. */
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

/** A multi-line text field. */
export interface Lines extends Pick<Field, 'name' | 'label' | 'hint' | 'problem' | 'value' | 'optional'> {
  readonly rows: number
  readonly maxCharacters: number
  /** Needed if the page has several fields with this name. */
  readonly id?: string
}

/** Renders a multi-line text field. */
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

/** Renders a select field; `id` is needed if the page has several fields with this name. */
export function select(
  name: string,
  label: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string | undefined,
  id = name,
  problem?: string,
): Html {
  return html`<div class="field">
    ${aboveField(id, { label, problem })}
    <select id="${id}" name="${name}" ${howToFill(id, { problem, optional: true })}>
      ${options.map(
        ([value, text]) => html`<option value="${value}" ${value === chosen ? 'selected' : ''}>${text}</option>`,
      )}
    </select>
  </div>`
}

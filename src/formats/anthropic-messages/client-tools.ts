import type { JsonObject } from '../../domain/json.ts'

const text = { type: 'string' } as const
const whole = { type: 'integer' } as const
const point = { type: 'array', items: whole, description: 'x and y in pixels' } as const

function object(properties: JsonObject, required: readonly string[]): JsonObject {
  return { type: 'object', properties, required }
}

function choice(...values: readonly string[]): JsonObject {
  return { type: 'string', enum: values }
}

const files: JsonObject = {
  path: text,
  view_range: { type: 'array', items: whole, description: 'first and last line, for view' },
  file_text: text,
  old_str: text,
  new_str: text,
  insert_line: whole,
  insert_text: text,
}

/** A tool that the caller runs and Anthropic's models know without a declaration: its description and arguments. */
interface ClientTool {
  readonly description: string
  readonly parameters: JsonObject
}

/** By the tool's type without its date. */
const clientTools: Readonly<Record<string, ClientTool>> = {
  bash: {
    description: 'Runs a command in a shell that stays open between calls; restart begins a new one.',
    parameters: object({ command: text, restart: { type: 'boolean' } }, []),
  },
  text_editor: {
    description:
      'Views and edits text files. view shows a file or folder, create writes file_text, str_replace replaces old_str, which must occur exactly once, with new_str, and insert inserts text after line insert_line.',
    parameters: object({ command: choice('view', 'create', 'str_replace', 'insert', 'undo_edit'), ...files }, [
      'command',
      'path',
    ]),
  },
  memory: {
    description: 'Stores notes as files under /memories, which remain after the conversation.',
    parameters: object(
      {
        command: choice('view', 'create', 'str_replace', 'insert', 'delete', 'rename'),
        ...files,
        old_path: text,
        new_path: text,
      },
      ['command'],
    ),
  },
  computer: {
    description: 'Uses the screen, mouse, and keyboard of a computer. screenshot shows the screen.',
    parameters: object(
      {
        action: choice(
          'screenshot',
          'key',
          'hold_key',
          'type',
          'cursor_position',
          'mouse_move',
          'left_mouse_down',
          'left_mouse_up',
          'left_click',
          'left_click_drag',
          'right_click',
          'middle_click',
          'double_click',
          'triple_click',
          'scroll',
          'wait',
          'zoom',
        ),
        coordinate: point,
        start_coordinate: point,
        text,
        scroll_direction: choice('up', 'down', 'left', 'right'),
        scroll_amount: whole,
        duration: { type: 'number', description: 'seconds' },
        region: { type: 'array', items: whole },
      },
      ['action'],
    ),
  },
}

const dated = /^(bash|text_editor|memory|computer)_\d{8}$/

/** How to declare a tool such as `bash_20250124` to other models; undefined for tools that Anthropic itself runs. */
export function clientTool(type: string): ClientTool | undefined {
  const name = dated.exec(type)?.[1]
  return name === undefined ? undefined : clientTools[name]
}

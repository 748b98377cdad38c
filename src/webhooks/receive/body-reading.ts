/**
 * Texts at places of a message (sender-rule.ts), for a body of any octets: its JSON is parsed when a place first asks for it and once, a form
 * is read only where the Content-Type says that it is one, and nothing throws.
 */
import type { Place } from '../presets/sender-rule.ts';
import { formField } from './form-field.ts';
import { valueAt } from './json-pointer.ts';
import { fieldText, type Message, mediaTypeOf } from './message.ts';

declare const TextDecoder: {
  new (label: 'utf-8', options: { readonly fatal: true }): { decode(octets: Uint8Array): string };
};

/** It keeps nothing from one body to the next. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

const formType = 'application/x-www-form-urlencoded';

export type BodyReading = {
  /** The text at a place; undefined: there is none. */
  textAt(place: Place): string | undefined;
  /** The text at a JSON Pointer into the body. */
  jsonText(pointer: string): string | undefined;
};

export function readingOf(message: Message): BodyReading {
  let content: { readonly text: string | undefined } | undefined;
  let json: { readonly value: unknown } | undefined;
  let isForm: boolean | undefined;

  function contentText(): string | undefined {
    content ??= { text: decodedText(message.body) };
    return content.text;
  }

  function jsonText(pointer: string): string | undefined {
    json ??= { value: parsedJson(contentText()) };
    return textOf(valueAt(json.value, pointer));
  }

  function formText(name: string): string | undefined {
    isForm ??= mediaTypeOf(message) === formType;
    const text = isForm ? contentText() : undefined;
    return text === undefined ? undefined : textOf(formField(text, name));
  }

  return {
    jsonText,
    textAt(place) {
      if ('header' in place) return fieldText(message, place.header);
      return 'json' in place ? jsonText(place.json) : formText(place.form);
    },
  };
}

/** Undefined for what is no UTF-8: guessing would make one id of different ones. */
function decodedText(body: Uint8Array): string | undefined {
  try {
    return utf8.decode(body);
  } catch {
    return undefined;
  }
}

function parsedJson(text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Strings that say something, and whole numbers. A number beyond 2^53 or with a fraction may have been rounded while it was parsed, and a lone
 * surrogate is lost when it is encoded: two ids would become one, and a message be taken for a repetition of another.
 */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : undefined;
  return typeof value === 'string' && value !== '' && value.isWellFormed() ? value : undefined;
}

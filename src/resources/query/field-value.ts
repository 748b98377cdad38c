/**
 * Reads a client's text or JSON value as the value of a field. Both stores compare these values, so each is exact: a
 * number is one that a double holds, a time has the kept spelling of instants, and a string has nothing that PostgreSQL cannot
 * store (U+0000, lone surrogates).
 */
import { checkNumber } from '../../http/syntax/json.ts';
import type { Field, ScalarType } from '../../model/field.ts';
import { instantWords, keptInstant } from '../../model/timestamp.ts';

export type Value = string | number | boolean;

/** A day, which means its first moment in UTC. */
const dayGrammar = /^\d{4}-\d\d-\d\d$/;
const wholeNumber = /^-?[1-9]\d*$/;
/** A `+` that a query string has made a space. */
const spacedOffset = / \d\d:\d\d$/;

const wanted: Readonly<Record<ScalarType, string>> = {
  string: 'a string without U+0000',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  timestamp: `a day, or ${instantWords}`,
};

/** Returns the type of the field's values; for an array, of its items. */
export function valueType(field: Field): ScalarType {
  if (field.type === 'array') return field.item ?? 'string';
  return field.type === 'json' ? 'string' : field.type;
}

export function describeValue(field: Field): string {
  return wanted[valueType(field)];
}

/** Names the likely mistake in a refused text of a query string, to end a message with; empty if none is likely. */
export function hintFor(field: Field, text: string): string {
  const type = valueType(field);
  if (type === 'timestamp') return spacedOffset.test(text) ? '; write "+" as %2B in a URL' : '';
  const isNumber = type === 'integer' || type === 'number';
  return isNumber && wholeNumber.test(text) ? '; a double cannot keep it exactly' : '';
}

/** Reads text from a query string; undefined if it is not a value of the type. */
export function readText(type: ScalarType, text: string): Value | undefined {
  switch (type) {
    case 'string':
      return isStorable(text) ? text : undefined;
    case 'number':
      return readNumber(text);
    case 'integer': {
      const number = readNumber(text);
      return Number.isInteger(number) ? number : undefined;
    }
    case 'boolean':
      if (text === 'true') return true;
      return text === 'false' ? false : undefined;
    case 'timestamp':
      return keptInstant(dayGrammar.test(text) ? `${text}T00:00:00Z` : text);
  }
}

/** Reads a JSON value or an SQL literal; undefined if it is not a value of the type. */
export function readValue(type: ScalarType, value: unknown): Value | undefined {
  switch (typeof value) {
    case 'string':
      return type === 'string' || type === 'timestamp' ? readText(type, value) : undefined;
    case 'number':
      if (!Number.isFinite(value)) return undefined;
      // Adding 0 turns -0 into 0.
      return type === 'number' || (type === 'integer' && Number.isInteger(value)) ? value + 0 : undefined;
    case 'boolean':
      return type === 'boolean' ? value : undefined;
    default:
      return undefined;
  }
}

/** Reads a non-negative integer of at most fifteen digits, as in `limit=20`. */
export function readCount(text: string): number | undefined {
  if (text.length === 0 || text.length > 15) return undefined;
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    count = count * 10 + digit;
  }
  return count;
}

export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

function readNumber(text: string): number | undefined {
  return text.length > 0 && checkNumber(text, 0) === text.length ? Number(text) + 0 : undefined;
}

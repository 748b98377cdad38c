/**
 * Reads a client's text or JSON value as the value of a field. Both stores compare these values, so each is exact: a
 * number is one that a double holds, a time is UTC with milliseconds, and a string has nothing that PostgreSQL cannot
 * store (U+0000, lone surrogates).
 */
import { checkNumber } from '../../http/syntax/json-number.ts';
import type { Field, ScalarType } from '../../model/field.ts';

export type Value = string | number | boolean;

/** A date, or a date and time in UTC with up to three decimals of the second. */
const timeGrammar = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,3})?Z)?$/;

const wanted: Readonly<Record<ScalarType, string>> = {
  string: 'a string without U+0000',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  timestamp: 'a time in UTC such as 2026-01-31T12:00:00Z',
};

/** Returns the type of the field's values; for an array, of its items. */
export function valueType(field: Field): ScalarType {
  if (field.type === 'array') return field.item ?? 'string';
  return field.type === 'json' ? 'string' : field.type;
}

export function describeValue(field: Field): string {
  return wanted[valueType(field)];
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
      return readTime(text);
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

function readTime(text: string): string | undefined {
  if (!timeGrammar.test(text)) return undefined;
  const time = Date.parse(text);
  if (Number.isNaN(time)) return undefined;
  const normal = new Date(time).toISOString();
  // Date.parse carries 30 February and 24:00 over into the next day; both are refused.
  return normal.startsWith(text.slice(0, 19)) ? normal : undefined;
}

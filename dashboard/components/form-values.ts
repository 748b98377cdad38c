/** Values of a form as texts: how each kind of schema is written in a field, read from it, and where a fault of the server belongs. */
import type { Schema } from '../description.ts';
import { isObject, type Problem } from '../send.ts';
import { lineOfPointer } from './pointer-line.ts';

/** A text that may be longer gets several lines in a form; addresses of at most 2,048 characters get one. */
const longTextCharacters = 2048;

export type Kind =
  | ('text' | 'long' | 'number' | 'integer' | 'boolean' | 'choice' | 'choices' | 'texts' | 'json')
  | ('reference' | 'time' | 'date' | 'file' | 'files');

/** The texts that a schema lists, as an enum or as a union of constants; empty if it is no such list. */
export function choicesOf(schema: Schema): readonly string[] {
  const values = schema.enum ?? (schema.anyOf ?? schema.oneOf)?.map((each) => each.const) ?? [];
  return values.every((each) => typeof each === 'string') ? values : [];
}

/** The kind of field that a schema gets. */
export function kindOf(schema: Schema): Kind {
  if (schema['x-references'] !== undefined) return 'reference';
  if (choicesOf(schema).length > 0) return 'choice';
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
  const [type, ...further] = types.filter((each) => each !== 'null');
  if (type === undefined || further.length > 0) return 'json';
  if (type === 'string') return kindOfText(schema);
  if (type === 'number' || type === 'integer' || type === 'boolean') return type;
  if (type !== 'array' || schema.items === undefined) return 'json';
  if (schema.items.format === 'binary') return 'files';
  if (choicesOf(schema.items).length > 0) return 'choices';
  return schema.items.type === 'string' ? 'texts' : 'json';
}

function kindOfText({ format, maxLength = 0, 'x-display': display }: Schema): Kind {
  if (format === 'binary') return 'file';
  if (format === 'date-time') return 'time';
  if (format === 'date') return 'date';
  return display?.as === 'long' || maxLength > longTextCharacters ? 'long' : 'text';
}

/** The value as the text of its field: a line for each text of a list, JSON for objects. */
export function toText(value: unknown, schema: Schema): string {
  if (value === undefined || value === null) return '';
  const kind = kindOf(schema);
  if ((kind === 'texts' || kind === 'choices') && Array.isArray(value)) return value.join('\n');
  return kind === 'json' || typeof value === 'object' ? JSON.stringify(value, undefined, 2) : String(value);
}

export function fromText(
  text: string,
  schema: Schema,
): { readonly value: unknown } | { readonly failed: string } {
  if (text === '') return { value: null };
  switch (kindOf(schema)) {
    case 'number':
    case 'integer': {
      const value = Number(text);
      return Number.isNaN(value) ? { failed: `must be a number, not ${text}` } : { value };
    }
    case 'boolean':
      return { value: text === 'true' };
    case 'texts':
    case 'choices':
      return { value: text.split('\n').filter((line) => line !== '') };
    case 'json':
      try {
        return { value: JSON.parse(text) };
      } catch (error) {
        return { failed: `must be JSON: ${placed((error as Error).message, text)}` };
      }
    default:
      return { value: text };
  }
}

/** The message of the parser with the line in place of the position. */
function placed(message: string, text: string): string {
  const [, position] = /at position (\d+)/.exec(message) ?? [];
  if (position === undefined) return message;
  const line = text.slice(0, Number(position)).split('\n').length;
  return message.replace(/ at position \d+.*$/s, ` in line ${line}`);
}

/** The faults of the server at a member, with the line of the text if they are within its JSON. */
export function faultsAt(problem: Problem | undefined, name: string, text: string): readonly string[] {
  const own = `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  return (problem?.faults ?? [])
    .filter(({ pointer }) => pointer === own || pointer.startsWith(`${own}/`))
    .map(({ pointer, message }) => {
      const within = pointer.slice(own.length);
      if (within === '') return message;
      const line = lineOfPointer(text, within);
      return `${line === undefined ? within : `line ${line}, ${within}`}: ${message}`;
    });
}

/** A new document for POST: members without a value are left out, so that the server sets their defaults. */
export function withoutNulls(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}

/** Members of two versions that differ, by name. */
export function differencesOf(one: unknown, other: unknown): readonly string[] {
  if (!isObject(one) || !isObject(other)) return [];
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]));
}

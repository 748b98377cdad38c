/**
 * Converts the names and texts of a form to a document, typed by the collection's schema (form-shape.ts). A text
 * becomes a number by the grammar of JSON, or a boolean from `true` or `false`; one that fits no type of its field
 * stays a text, so that validation refuses it with a pointer. Undeclared names become members as well, for validation
 * to refuse. `__proto__`, and numbers that a double cannot hold, are refused here, as in JSON.
 */
import type { FieldError, Problem } from '../../http/problem.ts';
import type { Json } from '../../http/syntax/json.ts';
import { checkNumber, malformedNumber } from '../../http/syntax/json-number.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { ContentShape, FormPlace } from './form-shape.ts';
import { errorsMaxDefault } from './validator.ts';

/** A file is the index of it among the files of the content. */
export type FormEntry = readonly [name: string, value: string | number];

export type FormDocument =
  | { readonly ok: true; readonly value: Members }
  | { readonly ok: false; readonly problem: Problem };

type Members = { [name: string]: Json };

/** Builds the document. A repeated name is refused unless its field is an array. */
export function formDocument(entries: readonly FormEntry[], shape: ContentShape): FormDocument {
  const root: Members = {};
  const arrays = new Set<FormPlace>();
  const errors: FieldError[] = [];
  for (const [name, value] of entries) {
    if (name === '__proto__') return unknownName(name);
    const place = shape.places.get(name) ?? unknownPlace(name);
    const message = numberFault(value, place);
    if (message !== undefined) errors.push({ pointer: formatJsonPointer(place.path), message });
    const parent = makeParent(root, place.path);
    const member = place.path.at(-1) ?? name;
    if (parent === undefined) return repeated(name);
    const standing = Object.hasOwn(parent, member) ? parent[member] : undefined;
    if (place.repeats && Array.isArray(standing)) standing.push(convert(value, place));
    else if (standing !== undefined) return repeated(name);
    else if (place.repeats) {
      parent[member] = [convert(value, place)];
      arrays.add(place);
    } else if (value !== '' || !place.emptyIsAbsent) parent[member] = convert(value, place);
  }
  if (errors.length > 0)
    return { ok: false, problem: { code: 'validation_failed', errors: errors.slice(0, errorsMaxDefault) } };
  for (const place of arrays) resolveEmpty(root, place);
  return { ok: true, value: root };
}

/** The fault of a number that a double cannot hold. Left as a text, it would be refused as no number at all. */
function numberFault(text: string | number, { kinds }: FormPlace): string | undefined {
  if (typeof text === 'number' || kinds.has('string') || !kinds.has('number')) return undefined;
  const fault = checkNumber(text, 0);
  if (typeof fault === 'number' || fault === malformedNumber || Number.isNaN(Number(text))) return undefined;
  return 'is beyond the range that a double holds exactly';
}

/** Converts the text to a type of its field; returns the text itself if none fits. */
function convert(text: string | number, place: FormPlace): Json {
  if (typeof text === 'number') return text;
  if (place.kinds.has('string')) return text;
  if (place.kinds.has('number') && text !== '' && checkNumber(text, 0) === text.length) return Number(text);
  if (place.kinds.has('boolean') && (text === 'true' || text === 'false')) return text === 'true';
  if (place.kinds.has('null') && text === '') return null;
  return text;
}

const text: ReadonlySet<'string'> = new Set(['string']);

function unknownPlace(name: string): FormPlace {
  return { path: [name], kinds: text, repeats: false, emptyIsAbsent: false };
}

/**
 * Returns the object that holds the last member of the path, created if missing; undefined if another field put a text
 * in its way. Only the schema declares longer paths, so no name from a client is followed here.
 */
function makeParent(root: Members, path: readonly string[]): Members | undefined {
  let parent = root;
  for (let index = 0; index < path.length - 1; index += 1) {
    const name = path[index] ?? '';
    let next = Object.hasOwn(parent, name) ? parent[name] : undefined;
    if (next === undefined) {
      next = {};
      parent[name] = next;
    }
    if (typeof next !== 'object' || next === null || Array.isArray(next)) return undefined;
    parent = next;
  }
  return parent;
}

/** `tags=` alone means no array if it is optional, and an empty array if it is required. */
function resolveEmpty(root: Members, place: FormPlace): void {
  const parent = makeParent(root, place.path);
  const name = place.path.at(-1) ?? '';
  const items = parent?.[name];
  if (parent === undefined || !Array.isArray(items) || items.length !== 1 || items[0] !== '') return;
  if (place.emptyIsAbsent) delete parent[name];
  else items.pop();
}

function repeated(name: string): FormDocument {
  const shown = JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}...` : name);
  return {
    ok: false,
    problem: { code: 'content_malformed', message: `field ${shown} is given more than once` },
  };
}

function unknownName(name: string): FormDocument {
  const errors = [{ pointer: `/${name}`, message: 'unknown property' }];
  return { ok: false, problem: { code: 'validation_failed', errors } };
}

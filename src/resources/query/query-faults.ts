/** Collects and words the faults of a query, up to a bound. */
import type { Fields } from '../../model/field.ts';
import type { Fault } from './list-query.ts';

export type Place = { readonly parameter: string } | { readonly pointer: string } | undefined;

const echoedCharactersMax = 64;
const listedCharactersMax = 300;

export class FaultList {
  readonly #faults: Fault[] = [];
  readonly #max: number;

  /** @param max faults kept, at least 1 */
  constructor(max: number) {
    this.#max = Math.max(1, max);
  }

  get faults(): readonly Fault[] {
    return this.#faults;
  }

  get isEmpty(): boolean {
    return this.#faults.length === 0;
  }

  malformed(message: string, place?: Place): void {
    this.#add({ kind: 'malformed', message, ...place });
  }

  unprocessable(message: string, place?: Place): void {
    this.#add({ kind: 'unprocessable', message, ...place });
  }

  #add(fault: Fault): void {
    if (this.#faults.length < this.#max) this.#faults.push(fault);
  }
}

/** Quotes input for a message, cut to 64 characters. */
export function quote(text: string): string {
  return `"${cap(text)}"`;
}

/** Shows a JSON value in a message; of arrays and objects only the kind. */
export function show(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' && value !== null ? 'an object' : cap(String(value));
}

/** Cuts to 64 characters, never inside a surrogate pair. */
export function cap(text: string): string {
  if (text.length <= echoedCharactersMax) return text;
  const last = text.charCodeAt(echoedCharactersMax - 2);
  const isHighSurrogate = last >= 0xd800 && last <= 0xdbff;
  return `${text.slice(0, echoedCharactersMax - (isHighSurrogate ? 2 : 1))}…`;
}

export function unknownField(name: string, fields: Fields): string {
  if (fields.size === 0) return `unknown field ${quote(name)}; this list takes only limit, page and cursor`;
  return `unknown field ${quote(name)}; fields: ${listed(fields.keys())}`;
}

/** Joins names by commas, up to 300 characters. */
export function listed(names: Iterable<string>): string {
  let text = '';
  for (const name of names) {
    if (text.length + name.length > listedCharactersMax) return `${text}, ...`;
    text += text === '' ? name : `, ${name}`;
  }
  return text;
}

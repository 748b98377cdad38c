/** Collects and words the faults of a query, up to a bound. */

import type { Problem } from '../../http/problem.ts';
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

// Turns the faults of a compiled query into problems. In a query string every fault is 400. In the content of a QUERY, syntax errors are
// 400, and queries that cannot be executed are 422 (RFC 10008).

export const alteredCursor: Problem = {
  code: 'query_parameter_invalid',
  message: 'the cursor was altered or belongs to another query',
};

export function parameterProblem(faults: readonly Fault[]): Problem {
  return { code: 'query_parameter_invalid', ...described(faults) };
}

export function queryProblem(faults: readonly Fault[]): Problem {
  const malformed = faults.some(({ kind }) => kind === 'malformed');
  return { code: malformed ? 'content_malformed' : 'query_unprocessable', ...described(faults) };
}

/** The message joins all faults; those with a pointer are listed as well. */
function described(faults: readonly Fault[]): Pick<Problem, 'message' | 'errors'> {
  const [first] = faults;
  if (first === undefined) return {};
  const errors = faults
    .filter(({ pointer }) => pointer !== undefined)
    .map(({ pointer = '', message }) => ({ pointer, message }));
  const message = faults.length === 1 ? first.message : faults.map((fault) => fault.message).join('; ');
  return errors.length === 0 ? { message } : { message, errors };
}

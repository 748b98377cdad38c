/**
 * A request as the rules of senders see it (§4.14.1): raw octets, separate field lines, and the URL that the sender called. Nothing is joined
 * or parsed here: a repeated field is reported as such.
 */
import type { Request } from '../../http/message.ts';
import { parseRequestTarget } from '../../http/syntax/request-target.ts';
import { originOfUrl } from '../../http/syntax/uri.ts';
import type { Opening } from '../receive/challenge.ts';
import type { Message } from '../receive/message.ts';
import { memberReader } from '../receive/message-facts.ts';

export type Incoming = Pick<Request, 'method' | 'target' | 'fields' | 'rawFields'>;

/** Where senders call: without a URL at the Host of the request; `base` as clients see it. */
type SeenAt = { readonly publicUrl: string | undefined; readonly base: string };

/** A class, because a getter on an object literal would be created for each message (0.5 µs). */
export class IncomingMessage implements Message {
  readonly body: Uint8Array;
  readonly header: Message['header'];
  readonly #request: Incoming;
  readonly #seen: SeenAt;
  #members: ((pointer: string) => string | undefined) | undefined;

  constructor(request: Incoming, body: Uint8Array, seen: SeenAt) {
    this.body = body;
    this.header = (name) => headerOf(request.rawFields, name);
    this.#request = request;
    this.#seen = seen;
  }

  /** For the vendors whose signature is in the body, which is then parsed once. */
  member(pointer: string): string | undefined {
    this.#members ??= memberReader(this);
    return this.#members(pointer);
  }

  get rawFields(): readonly string[] {
    return this.#request.rawFields;
  }

  /** The complete URL as called. Few vendors sign it. */
  get url(): string {
    return calledUrl(this.#request, this.#seen);
  }
}

/** A question in a request, before anything is read of its content. */
export function openingOf({ method, target, rawFields }: Incoming): Omit<Opening, 'tokens'> {
  const parsed = parseRequestTarget(method, target);
  return {
    method,
    query: parsed !== undefined && 'query' in parsed ? parsed.query : undefined,
    header: (name) => headerOf(rawFields, name),
  };
}

/** Undefined: absent. An array: repeated. Comparing lengths first avoids lower-casing nine fields of ten. */
function headerOf(rawFields: readonly string[], name: string): string | readonly string[] | undefined {
  let first: string | undefined;
  let all: string[] | undefined;
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const field = rawFields[at] ?? '';
    if (field.length !== name.length || (field !== name && field.toLowerCase() !== name)) continue;
    const value = rawFields[at + 1] ?? '';
    if (first === undefined) first = value;
    else if (all === undefined) all = [first, value];
    else all.push(value);
  }
  return all ?? first;
}

/** Path and query are not normalized, because the sender signed them as they are; a proxy may have removed the root. */
function calledUrl({ method, target, fields }: Incoming, { publicUrl, base }: SeenAt): string {
  const parsed = parseRequestTarget(method, target);
  const path =
    parsed !== undefined && parsed.form !== 'asterisk' && parsed.form !== 'authority'
      ? `${parsed.path}${parsed.query === undefined ? '' : `?${parsed.query}`}`
      : target;
  if (publicUrl === undefined) return `http://${fields.host ?? ''}${path}`;
  return `${path.startsWith(`${base}/`) ? originOfUrl(publicUrl) : publicUrl}${path}`;
}

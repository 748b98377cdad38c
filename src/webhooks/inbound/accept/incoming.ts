/**
 * A request as the rules of senders see it (§4.14.1): its octets as they came, its fields one by one, and the URL that the sender called.
 * Nothing is joined or parsed here: a field that came twice is told as such.
 */
import type { Request } from '../../../http/message.ts';
import { parseRequestTarget } from '../../../http/syntax/request-target.ts';
import type { Message } from '../../receive/message.ts';

export type Incoming = Pick<Request, 'method' | 'target' | 'fields' | 'rawFields'>;

/** A class, since a getter of an object of its own would be made anew for each message (0.5 us). */
export class IncomingMessage implements Message {
  readonly body: Uint8Array;
  readonly header: Message['header'];
  readonly #request: Incoming;
  readonly #publicUrl: string | undefined;

  /** @param publicUrl where senders reach this program; undefined: at the Host that they name */
  constructor(request: Incoming, body: Uint8Array, publicUrl: string | undefined) {
    this.body = body;
    this.header = (name) => headerOf(request.rawFields, name);
    this.#request = request;
    this.#publicUrl = publicUrl;
  }

  /** Whole, as the sender called it. One vendor of eleven signs it. */
  get url(): string {
    return calledUrl(this.#request, this.#publicUrl);
  }
}

/** Undefined: not there. An array: more than once. Lower-casing what has the length of the name alone spares nine fields of ten. */
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

/** As the sender wrote it: path and query are not normalized, since it signed them as they are. */
function calledUrl({ method, target, fields }: Incoming, publicUrl: string | undefined): string {
  const parsed = parseRequestTarget(method, target);
  const path =
    parsed !== undefined && parsed.form !== 'asterisk' && parsed.form !== 'authority'
      ? `${parsed.path}${parsed.query === undefined ? '' : `?${parsed.query}`}`
      : target;
  const origin = publicUrl ?? `http://${fields.host ?? ''}`;
  return `${origin.endsWith('/') ? origin.slice(0, -1) : origin}${path}`;
}

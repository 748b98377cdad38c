/**
 * What a handler of received messages is given and may do (§4.14.5). It runs on a thread of its own, outside of the request. What it writes is
 * kept until it is done, and then committed together with the mark that the message is processed: all of it or nothing, and once.
 */

export type Handler = (message: ReceivedMessage, resources: HandlerResources) => void | Promise<void>;

export type ReceivedMessage = {
  /** `rec_...` */
  readonly id: string;
  readonly sender: string;
  readonly dedupeKey: string;
  readonly type: string | null;
  /** ISO 8601. */
  readonly receivedAt: string;
  /** From 1: which attempt this is. */
  readonly attempt: number;
  readonly contentType: string | null;
  /** Header fields that the sender's rule keeps, by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The octets as they came. */
  readonly body: Uint8Array;
  /** The body as JSON. @throws UnprocessableMessage where it is none: trying again would not help */
  json(): unknown;
  /** The body as UTF-8. @throws UnprocessableMessage where it is none */
  text(): string;
  /** The body as application/x-www-form-urlencoded. @throws UnprocessableMessage where it is no UTF-8 */
  form(): URLSearchParams;
  /** Aborted when the time for this attempt is over: pass it on to whatever takes long. */
  readonly signal: AbortSignal;
};

/** A resource as an administrator would read it. */
export type HandledResource = Readonly<Record<string, unknown>> & { readonly id: string };

/**
 * The declared collections, as an administrator sees them and by their rules: schemas, references, unique fields, events. Reads see what this
 * handler has written; lists see only what was committed. Each rejects with `ResourceRefused`, which need not be caught: the attempt fails by it.
 */
export type HandlerResources = {
  /** Undefined where there is none. */
  read(collection: string, id: string): Promise<HandledResource | undefined>;
  /** As a QUERY with this JSON body would (surface "Resources"); at most a page. */
  list(
    collection: string,
    query?: {
      readonly filter?: Readonly<Record<string, unknown>>;
      readonly sort?: readonly string[];
      readonly limit?: number;
      readonly q?: string;
    },
  ): Promise<readonly HandledResource[]>;
  /** @param options `id`: where PUT creates in the collection; `owner`: the principal whose it will be, nobody's if not said */
  create(
    collection: string,
    fields: Readonly<Record<string, unknown>>,
    options?: { readonly id?: string; readonly owner?: string },
  ): Promise<HandledResource>;
  replace(
    collection: string,
    id: string,
    fields: Readonly<Record<string, unknown>>,
  ): Promise<HandledResource>;
  /** A merge patch (RFC 7396). */
  patch(collection: string, id: string, patch: Readonly<Record<string, unknown>>): Promise<HandledResource>;
  delete(collection: string, id: string): Promise<void>;
  /** An event, as a POST to the event log would (§2.6). */
  emit(
    type: string,
    object: Readonly<Record<string, unknown>>,
    options?: { readonly tenant?: string },
  ): Promise<void>;
};

/** The message will never do: it fails at once, without further attempts. */
export class UnprocessableMessage extends Error {
  override readonly name = 'UnprocessableMessage';
}

/** The program would have refused this with an error answer (§7). */
export class ResourceRefused extends Error {
  override readonly name = 'ResourceRefused';
  /** Of the error registry: `not_found`, `validation_failed`, `unique_taken` ... */
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

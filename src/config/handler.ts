/**
 * The interface of handlers of received messages (§4.14.5). A handler runs on a thread of its own, outside of the request. Its writes are
 * collected until it returns, and committed in one transaction with the mark that the message is processed: all or nothing, and exactly once.
 */

export type Handler = (message: ReceivedMessage, resources: HandlerResources) => void | Promise<void>;

export type ReceivedMessage = {
  /** `rec_...` */
  readonly id: string;
  readonly sender: string;
  readonly dedupeKey: string;
  readonly type: string | null;
  readonly receivedAt: string;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  readonly contentType: string | null;
  /** Header fields that `keep` of the sender lists, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as received. */
  readonly body: Uint8Array;
  /** The body as JSON. @throws UnprocessableMessage for anything else, because a retry would not help */
  json(): unknown;
  /** The body as UTF-8. @throws UnprocessableMessage for anything else */
  text(): string;
  /** The body as application/x-www-form-urlencoded. @throws UnprocessableMessage for anything but UTF-8 */
  form(): URLSearchParams;
  /** Aborted when the time for this attempt is over; pass it on to long operations. */
  readonly signal: AbortSignal;
};

/** A resource as an administrator would read it. */
export type HandledResource = Readonly<Record<string, unknown>> & { readonly id: string };

/**
 * The declared collections, with the rights of an administrator and all their rules: schemas, references, unique fields, events. Reads see
 * the handler's own writes; lists see committed resources only. Each call rejects with `ResourceRefused`; uncaught, it fails the attempt.
 */
export type HandlerResources = {
  /** Undefined where there is no such resource. */
  read(collection: string, id: string): Promise<HandledResource | undefined>;
  /** Lists one page at most, like a QUERY with this JSON body. */
  list(
    collection: string,
    query?: {
      readonly filter?: Readonly<Record<string, unknown>>;
      readonly sort?: readonly string[];
      readonly limit?: number;
      readonly q?: string;
    },
  ): Promise<readonly HandledResource[]>;
  /** @param options `id`: the id of the new resource, in collections where PUT creates; `owner`: the owning principal, none by default */
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
  /** Emits an event, like a POST to the event log (§2.6). */
  emit(
    type: string,
    object: Readonly<Record<string, unknown>>,
    options?: { readonly tenant?: string },
  ): Promise<void>;
};

/** The message can never be processed: it fails at once, without further attempts. */
export class UnprocessableMessage extends Error {
  override readonly name = 'UnprocessableMessage';
}

/** A call that would have been refused with an error response (§7). */
export class ResourceRefused extends Error {
  override readonly name = 'ResourceRefused';
  /** A code of the error registry: `not_found`, `validation_failed`, `unique_taken`... */
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Sends one delivery: reads its event, applies the rights of the endpoint's owner, builds the body and the header
 * fields of the scheme, and passes both to the exchange. It returns the outcome; conclude-delivery.ts interprets it.
 *
 * The body of a delivery is the same for each attempt unless the owner's rights changed: §2.6 as stored, or §2.7 made
 * from it.
 */
import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Exchange, ExchangeCall, ExchangeOutcome } from '../../egress/exchange.ts';
import type { MemoryBudget, MemoryLease } from '../../memory/budget.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import type { Principal } from '../../model/principal.ts';
import type { OpenSpan, Tracing } from '../../observe/tracing.ts';
import { type MaybePromise, whenKnown } from '../../store/store.ts';
import type { Begun, Starts } from '../../work/starts.ts';
import { messageId, ownFields, signedFields } from '../sent-headers.ts';
import { standardKey, textKey } from '../signature/mac-keys.ts';
import { createShape, templatedBytesMax } from './body-template.ts';
import type { AttemptEnd, Attempted, Claim, Send, Unsent } from './conclude-delivery.ts';
import { type EndpointDirectory, type KnownEndpoint, partyOf } from './known-endpoint.ts';
import { deliveriesCollection } from './sending-tables.ts';
import {
  createStandardMessages,
  type EventSource,
  isExpunged,
  readWithin,
  type SentEvent,
  type StandardMessages,
} from './sent-event.ts';
import type { WebhookKeys } from './webhook-keys.ts';

/**
 * Returns a function that reduces an event to what the principal may see; undefined if the principal may see
 * everything.
 */
export type ViewOf = (
  principal: Principal,
) => ((type: string, doc: string, owner: string | null) => string) | undefined;

export type SendOptions = {
  readonly events: EventSource;
  readonly directory: Pick<EndpointDirectory, 'get' | 'mayReceive'>;
  readonly exchange: Exchange;
  readonly view: ViewOf;
  readonly keys: Pick<WebhookKeys, 'sign'>;
  readonly starts: Pick<Starts, 'begin'>;
  /** Counts the event and its body until the receiver has responded; each party has a share. */
  readonly memory: MemoryBudget;
  readonly tracing?: Tracing | undefined;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Version of the program, for `User-Agent`. */
  readonly version: string;
  /** Time in which a receiver must respond. */
  readonly webhookTimeoutMs: number;
};

/** What attempts to one endpoint share, made once for each version of the endpoint. */
type Prepared = {
  readonly keys: readonly { readonly key: KeyObject; readonly until: number | null }[];
  readonly ownFields: readonly string[];
  readonly view: ReturnType<ViewOf>;
  /** Undefined: the endpoint is sent events as they are. */
  readonly shape: ReturnType<typeof createShape> | undefined;
};

type Sending = SendOptions & {
  /** The fields that every delivery has. */
  readonly first: readonly string[];
  readonly messages: StandardMessages;
  readonly preparations: WeakMap<KnownEndpoint, Prepared>;
};

export function createSend(options: SendOptions): Send {
  const sending: Sending = {
    ...options,
    first: ['Content-Type', 'application/json', 'User-Agent', `Comity/${options.version}`],
    messages: createStandardMessages(options.keys),
    preparations: new WeakMap(),
  };
  return (claim, signal, end) => new Attempt(sending, claim, signal, end).begin();
}

export function shapeOf(endpoint: Endpoint): Prepared['shape'] {
  return endpoint.omit === undefined && endpoint.template === undefined ? undefined : createShape(endpoint);
}

/** Nothing is sent now: the outcome without an exchange. */
type Outcome = Exclude<Attempted['outcome'], { readonly kind: 'answered' }>;

type Content = { readonly body: Buffer; readonly fields: readonly string[] };

/**
 * One attempt: every step goes on synchronously if it need not wait for the store, for memory or for the thread pool,
 * because a dozen promises for each delivery took a tenth of its processor time.
 */
class Attempt {
  readonly #sending: Sending;
  readonly #claim: Claim;
  readonly #signal: AbortSignal;
  readonly #end: AttemptEnd;
  readonly #lease: MemoryLease;
  #start: Begun | undefined;
  #startedAt = 0;
  #span: OpenSpan | undefined;

  constructor(sending: Sending, claim: Claim, signal: AbortSignal, end: AttemptEnd) {
    this.#sending = sending;
    this.#claim = claim;
    this.#signal = signal;
    this.#end = end;
    this.#lease = sending.memory.lease('deliveries', { name: partyOf(claim.endpoint), isReserved: false });
  }

  begin(): void {
    const { events } = this.#sending;
    let made: MaybePromise<ExchangeCall | Outcome>;
    try {
      const { delivery, endpoint } = this.#claim;
      const event = readWithin(this.#lease, events, {
        ...{ eventId: delivery.eventId, signal: this.#signal },
        bodyBytesMax: endpoint.endpoint.template === undefined ? 0 : templatedBytesMax,
      });
      made = whenKnown(event, (read) => this.#prepare(read));
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (!(made instanceof Promise)) this.#send(made);
    else {
      made.then(
        (call) => this.#send(call),
        (error) => this.#fail(error),
      );
    }
  }

  #prepare(event: SentEvent | undefined): MaybePromise<ExchangeCall | Outcome> {
    const { directory, clock } = this.#sending;
    const { delivery, endpoint } = this.#claim;
    this.#startedAt = clock();
    if (event === undefined || isExpunged(event.doc)) return { kind: 'expunged' };
    const { doc, owner } = event;
    const { id } = endpoint.endpoint;
    // Of the current endpoint, since the delivery may be days old.
    const mayReceive = directory.mayReceive(id, {
      ...{ id: delivery.eventId, type: delivery.eventType, doc, owner },
    });
    return whenKnown(mayReceive, (may) => {
      const known = directory.get(id) ?? endpoint;
      if (known.principal === undefined) return ownerless();
      if (!may) return { kind: 'forbidden' };
      const prepared = this.#preparedFor(known, known.principal);
      return whenKnown(this.#startOf(prepared), (start) =>
        start?.isUsedUp === true
          ? { kind: 'given_up' }
          : whenKnown(this.#contentOf(event, known, prepared), (content) =>
              'kind' in content
                ? content
                : this.#callOf(content, known, { prepared, traceparent: event.traceparent }),
            ),
      );
    });
  }

  /** Counts the start where a function of the application makes the body, which may end the program. */
  #startOf({ view }: Prepared): MaybePromise<Begun | undefined> {
    if (view === undefined) return undefined;
    const { id, updatedAt } = this.#claim.delivery;
    return this.#sending.starts.begin({ table: deliveriesCollection.name, id, updatedAt }).then((start) => {
      this.#start = start;
      return start;
    });
  }

  #preparedFor(known: KnownEndpoint, principal: Principal): Prepared {
    const { preparations, view } = this.#sending;
    const found = preparations.get(known);
    if (found !== undefined) return found;
    const keyOf = known.endpoint.scheme === 'standard' ? standardKey : textKey;
    const prepared = {
      keys: known.secrets.map(({ secret, until }) => ({ key: createSecretKey(keyOf(secret)), until })),
      ownFields: ownFields(known.headers),
      view: view(principal),
      shape: shapeOf(known.endpoint),
    };
    preparations.set(known, prepared);
    return prepared;
  }

  #contentOf(
    event: SentEvent,
    { endpoint }: KnownEndpoint,
    { keys: all, view, shape }: Prepared,
  ): MaybePromise<Content | Unsent> {
    const { delivery } = this.#claim;
    const seen = view?.(delivery.eventType, event.doc, event.owner) ?? event.doc;
    const shaped = shape === undefined ? { doc: seen } : shape(seen);
    if (shaped === undefined) return { kind: 'too_large' };
    const now = this.#sending.clock();
    const keys = all.filter(({ until }) => until === null || until > now).map(({ key }) => key);
    const timestamp = Math.floor(now / 1000);
    const fieldsOf = signedFields[endpoint.scheme];
    if (endpoint.scheme !== 'standard') {
      const body = Buffer.from(shaped.text ?? shaped.doc);
      return { body, fields: fieldsOf({ delivery, body, keys, timestamp }, delivery.eventId) };
    }
    const message = this.#sending.messages(event, delivery.eventType, shaped);
    if (message === undefined) return { kind: 'expunged' };
    const { body } = message;
    const asymmetric =
      endpoint.signatures?.includes('v1a') === false
        ? []
        : message.signatures(messageId(delivery.eventId), timestamp);
    return whenKnown(asymmetric, (signatures) => ({
      body,
      fields: fieldsOf({ delivery, body, keys, timestamp }, delivery.eventId, signatures),
    }));
  }

  #callOf(
    content: Content,
    { url, endpoint }: KnownEndpoint,
    { prepared, traceparent }: { readonly prepared: Prepared; readonly traceparent: string | undefined },
  ): ExchangeCall {
    const { first, webhookTimeoutMs: timeoutMs, tracing } = this.#sending;
    const { delivery } = this.#claim;
    this.#span = tracing?.begin({
      name: `POST ${delivery.eventType}`,
      kind: 'client',
      attributes: {
        ...{ 'http.request.method': 'POST', 'server.address': new URL(url).hostname },
        ...{
          'comity.delivery': delivery.id,
          'comity.endpoint': endpoint.id,
          'comity.event': delivery.eventId,
        },
      },
      parent: traceparent,
    });
    const traced = this.#span === undefined ? [] : ['traceparent', this.#span.traceparent];
    const fields = [...first, ...content.fields, ...prepared.ownFields, ...traced];
    const { body } = content;
    return {
      url,
      method: 'POST',
      fields,
      body,
      timeoutMs,
      share: shareOf(this.#claim),
      signal: this.#signal,
    };
  }

  #send(made: ExchangeCall | Outcome): void {
    if ('kind' in made) this.#ended(made);
    else this.#sending.exchange(made, (outcome) => this.#ended(outcome));
  }

  #ended(outcome: Attempted['outcome']): void {
    this.#lease.release();
    void this.#start?.end();
    if (this.#span !== undefined) endSpan(this.#span, outcome);
    this.#end.attempted({ outcome, startedAt: this.#startedAt, endedAt: this.#sending.clock() });
  }

  #fail(error: unknown): void {
    this.#lease.release();
    void this.#start?.end();
    this.#span?.end(undefined, error);
    this.#end.failed(error);
  }
}

function endSpan(span: OpenSpan, outcome: Attempted['outcome']): void {
  if (outcome.kind !== 'answered') {
    span.end(undefined, outcome.kind === 'failed' ? outcome.failure : outcome.kind);
    return;
  }
  const { status } = outcome;
  const isAccepted = status >= 200 && status <= 299;
  span.end({ 'http.response.status_code': status }, isAccepted ? undefined : String(status));
}

/** Requested attempts have their own connections, so that slow attempts of the schedule do not delay them. */
function shareOf({ endpoint: { endpoint }, isAsked }: Claim): string {
  return isAsked === true ? `${endpoint.id} asked` : endpoint.id;
}

/**
 * An owner who is gone or disabled may read nothing; deliveries are retried by their schedule, in case the account is
 * enabled again.
 */
function ownerless(): ExchangeOutcome & { readonly kind: 'failed' } {
  return {
    kind: 'failed',
    failure: 'refused',
    message: 'the owner of the endpoint was deleted or disabled',
    timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 },
  };
}

/**
 * Sends one delivery: reads its event, applies the rights of the endpoint's owner, builds the body and the header
 * fields of the scheme, and passes both to the exchange. It returns the outcome; conclude-delivery.ts interprets it.
 *
 * The body of a delivery is the same for each attempt unless the owner's rights changed: §2.6 as stored, or §2.7 made
 * from it.
 */
import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Exchange, ExchangeOutcome } from '../../egress/exchange.ts';
import type { MemoryBudget } from '../../memory/budget.ts';
import type { Principal } from '../../model/principal.ts';
import { messageId, ownFields, plainFields, standardFields, timestampedFields } from '../sent-headers.ts';
import { standardKey, textKey } from '../signature/mac-keys.ts';
import type { Attempted, Claim, Send } from './delivery-claim.ts';
import { type EndpointDirectory, type KnownEndpoint, partyOf } from './known-endpoint.ts';
import {
  createStandardMessages,
  type EventSource,
  isExpunged,
  readWithin,
  type SentEvent,
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
  /** Counts the event and its body until the receiver has responded; each party has a share. */
  readonly memory: MemoryBudget;
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
};

export function createSend(options: SendOptions): Send {
  const { events, exchange, view, keys, clock, memory, version, webhookTimeoutMs, directory } = options;
  const first = ['Content-Type', 'application/json', 'User-Agent', `Comity/${version}`];
  const messages = createStandardMessages(keys);
  const preparations = new WeakMap<KnownEndpoint, Prepared>();

  function preparedFor(known: KnownEndpoint, principal: Principal): Prepared {
    const found = preparations.get(known);
    if (found !== undefined) return found;
    const keyOf = known.endpoint.scheme === 'standard' ? standardKey : textKey;
    const prepared = {
      keys: known.secrets.map(({ secret, until }) => ({ key: createSecretKey(keyOf(secret)), until })),
      ownFields: ownFields(known.headers),
      view: view(principal),
    };
    preparations.set(known, prepared);
    return prepared;
  }

  /** Undefined if there is nothing to send. */
  async function contentOf(
    { delivery, endpoint: { endpoint } }: Claim,
    event: SentEvent,
    { keys: all, view }: Prepared,
  ): Promise<{ readonly body: Buffer; readonly fields: readonly string[] } | undefined> {
    const doc = view?.(delivery.eventType, event.doc, event.owner) ?? event.doc;
    const now = clock();
    const active = all.filter(({ until }) => until === null || until > now).map(({ key }) => key);
    const timestamp = Math.floor(now / 1000);
    if (endpoint.scheme !== 'standard') {
      const body = Buffer.from(doc);
      const signed = { delivery, body, keys: active, timestamp };
      return { body, fields: endpoint.scheme === 'plain' ? plainFields(signed) : timestampedFields(signed) };
    }
    const message = messages(event, delivery.eventType, doc);
    if (message === undefined) return undefined;
    const { body } = message;
    const id = messageId(delivery.eventId);
    const asymmetric =
      endpoint.signatures?.includes('v1a') === false ? [] : await message.signatures(id, timestamp);
    return { body, fields: standardFields({ delivery, body, keys: active, timestamp }, id, asymmetric) };
  }

  async function attempt(claim: Claim, event: SentEvent, signal: AbortSignal): Promise<Attempted['outcome']> {
    if (isExpunged(event.doc)) return { kind: 'expunged' };
    const known = await receiverNow(directory, claim, event);
    if (known?.principal === undefined) return known === undefined ? { kind: 'forbidden' } : ownerless();
    const prepared = preparedFor(known, known.principal);
    const content = await contentOf({ ...claim, endpoint: known }, event, prepared);
    if (content === undefined) return { kind: 'expunged' };
    const { body } = content;
    const fields = [...first, ...content.fields, ...prepared.ownFields];
    const call = { url: known.url, method: 'POST', timeoutMs: webhookTimeoutMs, signal } as const;
    return exchange({ ...call, fields, body, share: shareOf(claim) });
  }

  return async (claim, signal) => {
    const lease = memory.lease('deliveries', { name: partyOf(claim.endpoint), isReserved: false });
    try {
      const event = await readWithin(lease, events, claim.delivery.eventId, signal);
      const startedAt = clock();
      const outcome: Attempted['outcome'] =
        event === undefined ? { kind: 'expunged' } : await attempt(claim, event, signal);
      return { outcome, startedAt, endedAt: clock() };
    } finally {
      lease.release();
    }
  };
}

/**
 * Returns the current endpoint, since the delivery may be days old; undefined if its owner may no longer read the
 * event.
 */
async function receiverNow(
  directory: SendOptions['directory'],
  { delivery, endpoint: begun }: Claim,
  event: SentEvent,
): Promise<KnownEndpoint | undefined> {
  const { id } = begun.endpoint;
  const subject = { ...event, id: delivery.eventId, type: delivery.eventType };
  const mayReceive = await directory.mayReceive(id, subject);
  const known = directory.get(id) ?? begun;
  return mayReceive || known.principal === undefined ? known : undefined;
}

/** Requested attempts have their own connections, so that slow attempts of the schedule do not delay them. */
function shareOf({ endpoint: { endpoint }, isAsked }: Claim): string {
  return isAsked === true ? `${endpoint.id} asked` : endpoint.id;
}

/**
 * An owner who is gone or disabled may read nothing; deliveries are retried by their schedule, in case the account is
 * enabled again.
 */
function ownerless(): ExchangeOutcome {
  return {
    kind: 'failed',
    failure: 'refused',
    message: 'the owner of the endpoint was deleted or disabled',
    timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 },
  };
}

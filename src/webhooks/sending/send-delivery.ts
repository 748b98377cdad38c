/**
 * Sends one delivery: finds its event, shows it as the owner of the endpoint may see it, makes the body and the header fields of the
 * scheme, and hands both to the exchange. What comes of it is a value; what it means is said elsewhere (conclude-delivery.ts).
 *
 * The body of a delivery is the same at each attempt unless what its owner may see has changed: §2.6 as stored, or §2.7 made from that.
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

/** An event as a principal sees it; undefined where it sees all there is. */
export type ViewOf = (
  principal: Principal,
) => ((type: string, doc: string, owner: string | null) => string) | undefined;

export type SendOptions = {
  readonly events: EventSource;
  readonly directory: Pick<EndpointDirectory, 'get' | 'mayReceive'>;
  readonly exchange: Exchange;
  readonly view: ViewOf;
  readonly keys: Pick<WebhookKeys, 'sign'>;
  /** For the event and the body made of it, until its receiver has answered; each party has a share. */
  readonly memory: MemoryBudget;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Of the program, for `User-Agent`. */
  readonly version: string;
  /** In which a receiver must answer. */
  readonly webhookTimeoutMs: number;
};

/** What the attempts to one endpoint share, made once for each state of it. */
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

  /** Undefined where there is nothing to send. */
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
    const asymmetric = await message.signatures(id, timestamp);
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

/** The endpoint as it stands, since the delivery may be days old; undefined: its owner may not read the event any more. */
async function receiverNow(
  directory: SendOptions['directory'],
  { delivery, endpoint: begun }: Claim,
  event: SentEvent,
): Promise<KnownEndpoint | undefined> {
  const { id } = begun.endpoint;
  const told = { ...event, id: delivery.eventId, type: delivery.eventType };
  const mayReceive = await directory.mayReceive(id, told);
  const known = directory.get(id) ?? begun;
  return mayReceive || known.principal === undefined ? known : undefined;
}

/** Attempts of the schedule that hang do not hold up one that somebody asked for. */
function shareOf({ endpoint: { endpoint }, isAsked }: Claim): string {
  return isAsked === true ? `${endpoint.id} asked` : endpoint.id;
}

/** An account that is gone or disabled may see nothing; its endpoints are tried again by their schedule, in case it comes back. */
function ownerless(): ExchangeOutcome {
  return {
    kind: 'failed',
    failure: 'refused',
    message: 'the owner of the endpoint is gone or disabled',
    timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 },
  };
}

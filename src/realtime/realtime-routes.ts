/**
 * `realtime` and `realtime/tickets` (§4.13, §9): events over a WebSocket, in the same form as the stream of `events`.
 * Every caller may connect; visibility is decided for each event. Sockets are the server's concern.
 */

import type { Request } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import { parseQueryString } from '../http/syntax/query-string.ts';
import { readWebSocketHandshake } from '../http/syntax/websocket-handshake.ts';
import { type ActionLimits, actionResource } from '../kernel/action.ts';
import type { CorsPolicy } from '../kernel/answer/cors.ts';
import { named, type OperationDocumentation, type Tag } from '../kernel/documentation.ts';
import type { CallerAddress } from '../kernel/rate-limit/caller-address.ts';
import type { Operation, Proposal, Resource, Standing } from '../kernel/resource.ts';
import type { Collection } from '../model/collection.ts';
import { callerOf, operatorId, type Principal, principalIdOf } from '../model/principal.ts';
import type { OpenConnections } from '../observe/open-connections.ts';
import { typesByParent } from '../resources/events/child-messages.ts';
import { createLogPlaces } from '../resources/events/log-places.ts';
import type { LooksStore } from '../resources/events/parent-looks.ts';
import type { LogView, WithholdsFrom } from '../resources/events/seen-event.ts';
import type { Services } from '../store/capabilities.ts';
import type { FollowedLog } from '../store/follow-log.ts';
import type { RetentionRule } from '../store/retention.ts';
import type { Store } from '../store/store.ts';
import { whenKnown } from '../store/store.ts';
import { Hub } from './hub.ts';
import {
  createAttempts,
  createIdentify,
  createTickets,
  credentialOf,
  keyParameter,
  realtimeTicketsTable,
  type Tickets,
  ticketParameter,
} from './identify.ts';
import { createReaders } from './readers.ts';
import { RealtimeSocket, type SocketLimits } from './socket.ts';
import { realtimeSubprotocol } from './subprotocol.ts';

export type RealtimeOptions = SocketLimits &
  Pick<Services, 'clock' | 'random'> & {
    readonly collections: readonly Collection[];
    readonly views: (principal: Principal) => LogView;
    /** Absent: nothing is withheld from those who missed events. */
    readonly withholds?: WithholdsFrom;
    readonly store: LooksStore &
      FollowedLog &
      Pick<Store, 'commit' | 'isLost' | 'onAppend' | 'onLost' | 'purgedTo'>;
    /** Seals places in the log. */
    readonly mac: (text: string) => string;
    /** `/api/v1` */
    readonly base: string;
    readonly cors: CorsPolicy;
    /** True if a page of a site that is neither ours nor trusted with credentials has sent the request. */
    readonly crossSite: (request: Pick<Request, 'fields'>) => boolean;
    readonly addressOf: CallerAddress;
    readonly limits: ActionLimits;
    readonly realtimeAttemptMs: number;
    readonly realtimeAttemptsMax: number;
    readonly realtimeTicketSeconds: number;
    /** Events read from the log at once, by the hub and by a socket that catches up. */
    readonly hubBatchEventsMax?: number;
    readonly catchUpBatchEventsMax?: number;
    readonly eventBatchBytesMax: number;
    readonly connections: Pick<OpenConnections, 'enter'>;
  };

/** Small, because a catch-up reads again what its client did not take. */
const catchUpBatchEventsMaxDefault = 32;
const hubBatchEventsMaxDefault = 100;

export function realtimeResources(options: RealtimeOptions): readonly Resource[] {
  const { base, store, clock, random, realtimeTicketSeconds, addressOf } = options;
  const tickets = createTickets({ store, clock, random }, realtimeTicketSeconds);
  const attempts = createAttempts(options.realtimeAttemptMs, options.realtimeAttemptsMax);
  return [
    {
      pattern: `${base}/realtime`,
      documentation: { name: 'Realtime', tag: realtimeTag },
      operations: new Map([['GET', converseOperation(options) as Operation]]),
      constantFields: [],
      offers: ['application/json'],
      admit: (request, principal, nowMs) =>
        callerOf(principal) === operatorId
          ? undefined
          : attempts.admit(callerOf(principal) || addressOf(request), nowMs),
      identify: createIdentify(options, tickets, attempts),
    },
    ticketResource(options, tickets),
  ];
}

export function realtimeRetention(settings: Pick<RealtimeOptions, 'realtimeTicketSeconds'>): RetentionRule {
  return { table: realtimeTicketsTable, seconds: settings.realtimeTicketSeconds };
}

const realtimeTag: Tag = { name: 'realtime', description: 'Events over a WebSocket, as they happen.' };
const standing: Standing = { exists: true, visible: true, permitted: true };
const parameters: ReadonlySet<string> = new Set([ticketParameter, keyParameter]);

/** OpenAPI describes the handshake only; the description covers the messages. */
const converseDocumentation: OperationDocumentation = {
  id: 'openRealtime',
  summary: 'Follow events over a WebSocket',
  description: `The opening handshake of RFC 6455, or over HTTP/2 an extended CONNECT (RFC 8441); the subprotocol is \`comity.v1\`. Frames are JSON texts. \
\`{"subscribe": ["products.*"], "after": "evt_..."}\` subscribes to patterns of event types: after the last event that the client received or a \`Comity-Position\`, or without \`after\`, or with \`now\`, from now on; if that is unknown or no longer kept, \`{"reset": {...}}\` is sent first and the events follow from now on. \
\`{"unsubscribe": [...]}\` removes patterns. Both are answered \`{"subscribed": [...]}\` with all patterns, and malformed frames \`{"error": "..."}\`. Each event about \
a resource that the caller may read is sent as \`{"event": {...}}\`; \`{"left": {...}}\` names a resource, or the resources that refer to another, that the caller may no longer read, and \
\`{"entered": {...}}\` those that it may read from now on. Close codes: 1001 if the server stops, 1008 if the credential is no longer valid, 1011 if the event log cannot be read, \
1013 if the client is too slow, and 4429 if it sends too many messages; it can resume after the last event that it received.`,
  parameters: [
    {
      name: ticketParameter,
      in: 'query',
      description:
        'A ticket in place of a credential, for clients that cannot send header fields. It works once.',
      schema: { type: 'string' },
    },
  ],
  codes: ['handshake_invalid', 'query_parameter_invalid'],
};

function converseOperation(options: RealtimeOptions): Operation {
  const { store, clock, collections } = options;
  const batchBytesMax = options.eventBatchBytesMax;
  const hub = new Hub(store, typesByParent(collections), {
    batchEventsMax: options.hubBatchEventsMax ?? hubBatchEventsMaxDefault,
    batchBytesMax,
  });
  const batchEventsMax = options.catchUpBatchEventsMax ?? catchUpBatchEventsMaxDefault;
  const shared = {
    ...{ store, hub, clock, limits: options, bounds: { batchEventsMax, batchBytesMax } },
    places: createLogPlaces(store, options.mac),
  };
  const readersByAudience = createReaders(collections, options.views, options.withholds);
  return {
    documentation: converseDocumentation,
    permission: () => 'granted',
    standing: () => standing,
    propose: (ask): Proposal => ({ problem: refuseSubprotocols(ask.request) ?? refuseParameters(ask.query) }),
    converse: ({ request, principal, known }) =>
      whenKnown(hub.head(), (head) => ({
        subprotocol: subprotocolsOf(request).length === 0 ? undefined : realtimeSubprotocol,
        open: (peer) => {
          const readers = readersByAudience.hold(principal);
          let socket: RealtimeSocket | undefined;
          const leave = options.connections.enter({
            ...{ kind: 'websocket', principal: principalIdOf(principal), peer: request.peer },
            about: () => [...(socket?.patterns ?? [])].join(' '),
            octets: () => socket?.octetsSent ?? 0,
          });
          const onClosed = (): void => {
            leave();
            readersByAudience.release(readers);
          };
          socket = new RealtimeSocket(shared, peer, { readers, known, head, onClosed });
          return socket;
        },
      })),
  };
}

function subprotocolsOf(request: Request): readonly string[] {
  const handshake = readWebSocketHandshake(request);
  return handshake.kind === 'sound' ? handshake.subprotocols : [];
}

/** A client whose subprotocol is not selected must close the connection (RFC 6455 §4.1); a refusal is clearer. */
function refuseSubprotocols(request: Request): Problem | null {
  const requested = subprotocolsOf(request);
  if (requested.length === 0 || requested.includes(realtimeSubprotocol)) return null;
  return {
    code: 'handshake_invalid',
    message: `Sec-WebSocket-Protocol must include ${realtimeSubprotocol}, or be absent`,
  };
}

function refuseParameters(query: string | undefined): Problem | null {
  const pairs = parseQueryString(query ?? '');
  const unknown = pairs?.find(([name]) => !parameters.has(name));
  if (pairs !== undefined && unknown === undefined) return null;
  return {
    code: 'query_parameter_invalid',
    message:
      unknown === undefined
        ? 'malformed query string'
        : `unknown query parameter: ${unknown[0].slice(0, 64)}`,
  };
}

/** A page of another site cannot read the response, nor use the user's cookie here: POST is unsafe (§5.4). */
function ticketResource(options: RealtimeOptions, tickets: Tickets): Resource {
  return actionResource(
    {
      path: `${options.base}/realtime/tickets`,
      tag: realtimeTag,
      name: 'RealtimeTickets',
      id: 'createRealtimeTicket',
      summary: 'Create a ticket for one WebSocket',
      description:
        'For browsers, whose scripts cannot send `Authorization` with a WebSocket: open it with `?ticket=`. A ticket works once, while the credential of this request is valid.',
      output: realtimeTicket,
      codes: [],
      permission: (principal) => (principal.kind === 'authenticated' ? 'granted' : 'denied'),
      handler: async ({ request, query }) => ({
        content: {
          ticket: await tickets.make(credentialOf(request, query)),
          expiresIn: options.realtimeTicketSeconds,
        },
      }),
    },
    options.limits,
  );
}

const realtimeTicket = {
  schema: named('RealtimeTicket', {
    description: 'A ticket, which opens one WebSocket as the caller.',
    type: 'object',
    properties: {
      ticket: { type: 'string' },
      expiresIn: { type: 'integer', description: 'Seconds until the ticket expires.' },
    },
    required: ['ticket', 'expiresIn'],
  }),
  example: { ticket: 'J2Xy0kzv6a9sBq3LwRZ1mP8dTgU4eNfhCoYi7VbEKrs', expiresIn: 30 },
};

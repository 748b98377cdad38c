/**
 * `realtime` and `realtime/tickets` (§4.13, §9; surface, "Connections"): events over a WebSocket, as the stream of `events` has them. Open to anyone:
 * what a principal may see is decided event by event. Nothing here knows sockets; the server makes one of the conversation.
 */

import type { Request } from '../../http/message.ts';
import type { Problem } from '../../http/problem.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import { readWebSocketHandshake } from '../../http/syntax/websocket-handshake.ts';
import { callerOf, operatorId } from '../../model/principal.ts';
import type { RetentionRule } from '../../store/retention.ts';
import type { Store } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import { type ActionOptions, actionResource } from '../action/action.ts';
import type { CorsPolicy } from '../answer/cors.ts';
import type { CallerAddress } from '../rate-limit/caller-address.ts';
import type { Operation, Proposal, Resource, Standing } from '../resource.ts';
import { createAttempts } from './attempts.ts';
import { realtimeSubprotocol } from './frames.ts';
import { Hub } from './hub.ts';
import { createIdentify, credentialOf, keyParameter, ticketParameter } from './identify.ts';
import { createReaders, type ReadersOptions } from './readers.ts';
import { RealtimeSocket, type SocketLimits } from './socket.ts';
import { createTickets, realtimeTicketsTable, type Tickets } from './tickets.ts';

export type RealtimeOptions = ReadersOptions &
  SocketLimits & {
    readonly store: Pick<Store, 'read' | 'commit' | 'tail' | 'head' | 'onAppend'>;
    /** `/api/v1` */
    readonly base: string;
    /** Milliseconds since the epoch. */
    readonly clock: () => number;
    readonly random: (count: number) => Buffer;
    readonly cors: CorsPolicy;
    /** True where a page of a site that is neither ours nor trusted with credentials has sent the request. */
    readonly crossSite: (request: Pick<Request, 'fields'>) => boolean;
    readonly addressOf: CallerAddress;
    readonly limits: ActionOptions['limits'];
    readonly realtimeAttemptMs: number;
    readonly realtimeAttemptsMax: number;
    readonly realtimeTicketSeconds: number;
    /** Events read from the log at once: by the hub, and by a socket that catches up. */
    readonly hubBatchEventsMax?: number;
    readonly catchUpBatchEventsMax?: number;
    readonly eventBatchBytesMax: number;
  };

/** A socket that catches up reads again what its client did not take, so it reads little. */
const catchUpBatchEventsMaxDefault = 32;
const hubBatchEventsMaxDefault = 100;

export function realtimeResources(options: RealtimeOptions): readonly Resource[] {
  const { base, store, clock, random, realtimeTicketSeconds, addressOf } = options;
  const tickets = createTickets({ store, clock, random, seconds: realtimeTicketSeconds });
  const attempts = createAttempts(options.realtimeAttemptMs, options.realtimeAttemptsMax);
  return [
    {
      pattern: `${base}/realtime`,
      operations: new Map([['GET', converseOperation(options) as Operation]]),
      constantFields: [],
      offers: ['application/json'],
      admit: (request, principal, nowMs) =>
        callerOf(principal) === operatorId
          ? undefined
          : attempts.admit(callerOf(principal) || addressOf(request), nowMs),
      identify: createIdentify({ ...options, tickets, attempts }),
    },
    ticketResource(options, tickets),
  ];
}

export function realtimeRetention(settings: Pick<RealtimeOptions, 'realtimeTicketSeconds'>): RetentionRule {
  return { table: realtimeTicketsTable, seconds: settings.realtimeTicketSeconds };
}

const standing: Standing = { exists: true, visible: true, permitted: true };
const parameters: ReadonlySet<string> = new Set([ticketParameter, keyParameter]);

function converseOperation(options: RealtimeOptions): Operation {
  const { store, clock } = options;
  const batchBytesMax = options.eventBatchBytesMax;
  const hub = new Hub({
    ...{ store, batchBytesMax },
    batchEventsMax: options.hubBatchEventsMax ?? hubBatchEventsMaxDefault,
  });
  const readersByAudience = createReaders(options);
  const batchEventsMax = options.catchUpBatchEventsMax ?? catchUpBatchEventsMaxDefault;
  return {
    permission: () => 'granted',
    standing: () => standing,
    propose: (ask): Proposal => ({ problem: refuseSubprotocols(ask.request) ?? refuseParameters(ask.query) }),
    converse: ({ request, principal, known }) =>
      whenKnown(hub.head(), (head) => ({
        subprotocol: subprotocolsOf(request).length === 0 ? undefined : realtimeSubprotocol,
        open: (peer) => {
          const readers = readersByAudience.hold(principal);
          const onEnd = known === undefined ? undefined : known.onEnd;
          const onClosed = (): void => readersByAudience.release(readers);
          const socket = {
            store,
            hub,
            readers,
            peer,
            clock,
            batchEventsMax,
            batchBytesMax,
            limits: options,
            onEnd,
            onClosed,
          };
          return new RealtimeSocket(socket, head);
        },
      })),
  };
}

function subprotocolsOf(request: Request): readonly string[] {
  const handshake = readWebSocketHandshake(request);
  return handshake.kind === 'sound' ? handshake.subprotocols : [];
}

/** A client that asks for others would have to close what it opened (RFC 6455 §4.1); it is told at once what is spoken here. */
function refuseSubprotocols(request: Request): Problem | null {
  const asked = subprotocolsOf(request);
  if (asked.length === 0 || asked.includes(realtimeSubprotocol)) return null;
  return {
    code: 'handshake_invalid',
    message: `the subprotocol that is spoken here is ${realtimeSubprotocol}`,
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
        ? 'the query string cannot be read'
        : `unknown query parameter: ${unknown[0].slice(0, 64)}`,
  };
}

/** The answer is of no use to a page of another site, and none with the user's cookie gets here: POST is unsafe (§5.4). */
function ticketResource(options: RealtimeOptions, tickets: Tickets): Resource {
  return actionResource({
    path: `${options.base}/realtime/tickets`,
    schema: undefined,
    limits: options.limits,
    permission: (principal) => (principal.kind === 'authenticated' ? 'granted' : 'denied'),
    act: async ({ request, query }) => ({
      content: {
        ticket: await tickets.make(credentialOf(request, query)),
        expiresIn: options.realtimeTicketSeconds,
      },
    }),
  });
}

/**
 * Events over a WebSocket (§4.13; surface, "Connections"), as resources/realtime. OpenAPI describes the handshake alone; what is said afterwards
 * has no place in a document but the description of the operation.
 */
import type { Components } from './components.ts';
import { type Item, ref } from './item.ts';
import type { Description } from './operation.ts';
import type { PathDescription } from './path-item.ts';
import { plainRead, type Traits } from './traits.ts';

const tag = 'realtime';

export const realtimeTag: Item = { name: tag, description: 'Events over a WebSocket, as they happen.' };

export function realtimePaths(base: string, components: Components): readonly PathDescription[] {
  return [
    {
      path: `${base}/realtime`,
      name: 'Realtime',
      noun: 'the WebSocket',
      operations: [converseDescription],
    },
    {
      path: `${base}/realtime/tickets`,
      name: 'RealtimeTickets',
      noun: 'tickets',
      operations: [ticketDescription(components)],
    },
  ];
}

const converseDescription: Description = {
  id: 'openRealtime',
  tag,
  summary: 'Follow events over a WebSocket',
  description: `The opening handshake of RFC 6455, over HTTP/2 an extended CONNECT (RFC 8441); the subprotocol is \`comity.v1\`. Frames are texts of JSON. \
\`{"subscribe": ["products.*"], "after": "evt_..."}\` adds patterns of event types, from the event on that was seen last, or without \`after\` from now on; \
\`{"unsubscribe": [...]}\` takes them away; both are answered \`{"subscribed": [...]}\` with the whole list, and what is malformed \`{"error": "..."}\`. Each event about \
something that the caller may read comes as \`{"event": {...}}\`. Closed with 1001 by a server that stops, 1008 when the credential ends, 1011 when the log cannot be read, \
1013 when the client falls behind: it resumes after the event that it saw last.`,
  traits: {
    ...plainRead,
    converses: true,
    validators: 'none',
    proposalCodes: ['handshake_invalid', 'query_parameter_invalid'],
  },
  parameters: [
    {
      name: 'ticket',
      in: 'query',
      description: 'Takes the place of a credential, for clients that can send no header fields. Works once.',
      schema: { type: 'string' },
    },
  ],
};

function ticketDescription(components: Components): Description {
  components.add('schemas', 'RealtimeTicket', {
    description: 'Opens one WebSocket as the caller.',
    type: 'object',
    properties: {
      ticket: { type: 'string' },
      expiresIn: { type: 'integer', description: 'Seconds until it is over.' },
    },
    required: ['ticket', 'expiresIn'],
  });
  const example = { ticket: 'J2Xy0kzv6a9sBq3LwRZ1mP8dTgU4eNfhCoYi7VbEKrs', expiresIn: 30 };
  const traits: Traits = {
    ...plainRead,
    method: 'POST',
    action: true,
    gate: { anonymous: false, known: true },
    validators: 'none',
  };
  return {
    id: 'createRealtimeTicket',
    tag,
    summary: 'Get a ticket for one WebSocket',
    description:
      'For browsers, whose scripts can send no `Authorization` with a WebSocket: `?ticket=` in its place opens one, once, as long as the credential of this request is good.',
    traits,
    content: { changed: { 'application/json': { schema: ref('schemas', 'RealtimeTicket'), example } } },
  };
}

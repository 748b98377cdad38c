/** `/meta/connections` (§4.21.8): the event streams, WebSockets and tunnels of the process that answers, for administrators. */
import { type ActionLimits, actionResource } from '../../kernel/action.ts';
import { named, pageSchema } from '../../kernel/documentation.ts';
import type { Resource } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import type { OpenConnections, ShownConnection } from '../../observe/open-connections.ts';
import { serviceTag } from './document.ts';

export type ConnectionRoutesOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly limits: ActionLimits;
  readonly connections: Pick<OpenConnections, 'newest'>;
};

/** There may be ten thousand; the newest answer what is going on, and the metrics have the numbers. */
const shownMax = 200;

const connectionSchema = named('OpenConnection', {
  description: 'An event stream, a WebSocket or a tunnel that is open.',
  type: 'object',
  properties: {
    id: { type: 'string', description: 'Among those of this process.' },
    kind: { enum: ['stream', 'websocket', 'tunnel'] },
    principal: { type: ['string', 'null'], description: 'Null: it came without a credential.' },
    peer: { type: 'string', description: 'Address of the peer.' },
    openedAt: { type: 'string', format: 'date-time' },
    about: {
      type: 'string',
      description:
        'The query of a stream, the patterns of a WebSocket, the kind and destination of a tunnel.',
    },
    octets: { type: 'integer', description: 'Carried to the client; by a tunnel in both directions.' },
  },
  required: ['id', 'kind', 'principal', 'peer', 'openedAt', 'about', 'octets'],
});

const example: ShownConnection = {
  id: '7',
  kind: 'websocket',
  principal: 'usr_01k1jx7v2mh5s8b4c9d0e6f3ga',
  peer: '192.0.2.7',
  openedAt: '2026-08-01T09:30:00.000Z',
  about: 'products.* orders.created',
  octets: 48_210,
};

export function connectionsResource({ base, limits, connections }: ConnectionRoutesOptions): Resource {
  return actionResource(
    {
      ...{ method: 'GET', path: `${base}/meta/connections`, tag: serviceTag },
      ...{ name: 'MetaConnections', noun: 'the open connections' },
      id: 'listConnections',
      summary: 'List open streams, WebSockets and tunnels',
      description: `Administrators only. The newest ${shownMax} of the process that answers, on one page.`,
      output: {
        schema: pageSchema('Connections', 'The newest connections.', connectionSchema),
        example: { items: [example], nextCursor: null },
      },
      codes: [],
      permission: (principal) => permission('administrator', 'read', principal),
      handler: () => ({ content: { items: connections.newest(shownMax), nextCursor: null } }),
    },
    limits,
  );
}

/** The inbox and the senders behind a socket, for the commands that ask about them: no more of the server than carries a request there. */
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { readRequestFields } from '../../src/http/request-fields.ts';
import { type Listening, listen } from '../harness/listening.ts';
import type { InboxRoom } from '../webhooks/received/walked-inbox.ts';

/** @param key whoever brings it as X-API-Key is the administrator */
export async function startInboxServer(room: InboxRoom, key: string): Promise<Listening> {
  const server = createServer(async (incoming, outgoing) => {
    const who = incoming.headers['x-api-key'] === key ? ['Authorization', 'Bearer root'] : [];
    const rawFields = [...incoming.rawHeaders, ...who];
    const bytes = await buffer(incoming);
    const { status, fields, content } = await room.respond({
      method: incoming.method ?? '',
      target: incoming.url ?? '',
      version: '1.1',
      fields: readRequestFields(rawFields),
      rawFields,
      readContent: async () => ({ ok: true, bytes }),
      peer: '127.0.0.1',
      id: 'test',
    });
    outgoing.writeHead(status, [...fields]);
    outgoing.end(content as string | null);
  });
  return listen(server);
}

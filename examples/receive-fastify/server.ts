/**
 * Receives webhooks with Fastify 5. `WEBHOOK_SECRET=whsec_... PORT=3000 node examples/receive-fastify/server.ts` takes those of Standard
 * Webhooks at `/webhooks`; WEBHOOK_SENDER names another preset: stripe, github, slack ...
 */

// In a project of your own: from 'comity/webhooks'.
import { memoryStore, type ReceiveOptions, receive, type VerifiedMessage } from 'comity/webhooks';
import fastify, { type FastifyInstance } from 'fastify';

const bodyLimit = 25 * 1024 * 1024;

export function createApp(
  sender: Pick<ReceiveOptions, 'sender' | 'secrets'>,
  handle: (message: VerifiedMessage) => void,
): FastifyInstance {
  const app = fastify();
  // A table with a unique key, in production.
  const store = memoryStore();

  // Within this scope every body stays as it came; the routes outside of it have their parsers.
  app.register(async (webhooks) => {
    webhooks.removeAllContentTypeParsers();
    webhooks.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit }, (_request, body, done) =>
      done(null, body),
    );
    webhooks.post('/webhooks', async (request, reply) => {
      const received = await receive(request.body as Buffer | undefined, request.headers, {
        ...sender,
        store,
      });
      reply.code(received.status).headers(received.headers).send(received.body);
      if (received.outcome === 'accepted') handle(received.message);
      if (received.outcome === 'refused') console.warn(received.reason, received.hint ?? '');
      return reply;
    });
  });

  app.post('/orders', async (request) => request.body);
  return app;
}

if (import.meta.main) {
  const { WEBHOOK_SECRET = '', WEBHOOK_SENDER = 'standard', PORT = '3000' } = process.env;
  const sender = { sender: WEBHOOK_SENDER as 'standard', secrets: WEBHOOK_SECRET.split(',') };
  const app = createApp(sender, ({ dedupeKey, type }) => console.log('handling', dedupeKey, type));
  await app.listen({ port: Number(PORT) });
}

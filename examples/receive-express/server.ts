/**
 * Receives webhooks with Express 5. `WEBHOOK_SECRET=whsec_... PORT=3000 node examples/receive-express/server.ts` takes those of Standard
 * Webhooks at `/webhooks`; WEBHOOK_SENDER names another preset: stripe, github, slack ...
 */

// In a project of your own: from 'comity/webhooks'.
import { memoryStore, type ReceiveOptions, receive, type VerifiedMessage } from 'comity/webhooks';
import express, { type App } from 'express';

export function createApp(
  sender: Pick<ReceiveOptions, 'sender' | 'secrets'>,
  handle: (message: VerifiedMessage) => void,
): App {
  const app = express();
  // A table with a unique key, in production.
  const store = memoryStore();

  // The request itself, which nothing has read: body parsers stand behind this route and not before it.
  app.post('/webhooks', async (request, response) => {
    const received = await receive(request, request.headers, { ...sender, store });
    response
      .status(received.status)
      .set(received.headers)
      .end(received.body ?? '');
    if (received.outcome === 'accepted') handle(received.message);
    if (received.outcome === 'refused') console.warn(received.reason, received.hint ?? '');
  });

  app.use(express.json());
  app.post('/orders', (request, response) => response.end(JSON.stringify(request.body)));
  return app;
}

if (import.meta.main) {
  const { WEBHOOK_SECRET = '', WEBHOOK_SENDER = 'standard', PORT = '3000' } = process.env;
  const sender = { sender: WEBHOOK_SENDER as 'standard', secrets: WEBHOOK_SECRET.split(',') };
  createApp(sender, ({ dedupeKey, type }) => console.log('handling', dedupeKey, type)).listen(Number(PORT));
}

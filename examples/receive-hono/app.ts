/**
 * Receives webhooks with Hono 4, on any runtime that has fetch's Request: Node (server.ts), Deno, Bun, workers at the edge.
 */

// In a project of your own: from 'comity/webhooks'.
import { memoryStore, type ReceiveOptions, receive, type VerifiedMessage } from 'comity/webhooks';
import { Hono } from 'hono';

export function createApp(
  sender: Pick<ReceiveOptions, 'sender' | 'secrets'>,
  handle: (message: VerifiedMessage) => void,
): Hono {
  const app = new Hono();
  // A table with a unique key, in production.
  const store = memoryStore();

  app.post('/webhooks', async (context) => {
    // The Request itself: where something has read it as text, context.req.arrayBuffer() is that text, and maybe other octets.
    const { raw } = context.req;
    const received = await receive(raw, raw.headers, { ...sender, store });
    if (received.outcome === 'accepted') handle(received.message);
    if (received.outcome === 'refused') console.warn(received.reason, received.hint ?? '');
    return new Response(received.body, received);
  });

  app.post('/orders', async (context) => context.json(await context.req.json()));
  return app;
}

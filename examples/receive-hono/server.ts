/**
 * app.ts on Node: `WEBHOOK_SECRET=whsec_... PORT=3000 node examples/receive-hono/server.ts` takes messages of Standard Webhooks at
 * `/webhooks`; WEBHOOK_SENDER names another preset: stripe, github, slack ...
 */
import { serve } from '@hono/node-server';
import { createApp } from './app.ts';

const { WEBHOOK_SECRET = '', WEBHOOK_SENDER = 'standard', PORT = '3000' } = process.env;
const sender = { sender: WEBHOOK_SENDER as 'standard', secrets: WEBHOOK_SECRET.split(',') };
const app = createApp(sender, ({ dedupeKey, type }) => console.log('handling', dedupeKey, type));

serve({ fetch: app.fetch, port: Number(PORT) });

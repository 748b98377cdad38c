/** The receivers of the examples in the frameworks that they are for, in this process, with messages as senders post them. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { after, before, describe, mock, test } from 'node:test';
import { serve } from '@hono/node-server';
import { sign as signForge } from '@octokit/webhooks-methods';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { Webhook } from 'standardwebhooks';
import { createApp as createExpress } from '../../../examples/receive-express/server.ts';
import { createApp as createFastify } from '../../../examples/receive-fastify/server.ts';
import { createApp as createHono } from '../../../examples/receive-hono/app.ts';
import {
  memoryStore,
  type PresetName,
  type RawBody,
  receive,
  signTimestamped,
  type VerifiedMessage,
} from '../../../src/webhooks/index.ts';

const secrets = ['whsec_c2VjcmV0IG9mIHRoZSBlbmRwb2ludCBlcF8x'];
const [secret = ''] = secrets;
const json = 'application/json';

/** With spaces, which a parser would lose. */
const body = '{ "id": "evt_1", "type": "products.created", "action": "opened", "price": 1.0 }';

type Fields = Readonly<Record<string, string>>;
type Handle = (message: VerifiedMessage) => void;
type Running = { readonly url: string; readonly close: () => void };
type Start = (sender: PresetName, handle: Handle) => Promise<Running>;

async function runningOf(server: Server): Promise<Running> {
  if (!server.listening) await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => void server.close().closeAllConnections() };
}

/** Each example on a port of its own. */
const frameworks: Readonly<Record<string, Start>> = {
  express: (sender, handle) => runningOf(createExpress({ sender, secrets }, handle).listen(0, '127.0.0.1')),
  fastify: async (sender, handle) => {
    const app = createFastify({ sender, secrets }, handle);
    await app.listen({ port: 0, host: '127.0.0.1' });
    return runningOf(app.server);
  },
  hono: (sender, handle) =>
    runningOf(
      serve({
        fetch: createHono({ sender, secrets }, handle).fetch,
        port: 0,
        hostname: '127.0.0.1',
      }) as Server,
    ),
};

const signs: Readonly<
  Partial<Record<PresetName, (content: string, at: number) => Fields | Promise<Fields>>>
> = {
  standard: (content, at) => ({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(at),
    'webhook-signature': new Webhook(secret).sign('msg_1', new Date(at * 1000), content),
  }),
  stripe: async (content, timestamp) => ({
    'stripe-signature': await signTimestamped({ body: content, secrets, timestamp }),
  }),
  github: async (content) => ({
    'x-hub-signature-256': await signForge(secret, content),
    'x-github-delivery': 'dlv-1',
    'x-github-event': 'issues',
  }),
  slack: (content, at) => ({
    'x-slack-request-timestamp': String(at),
    'x-slack-signature': `v0=${createHmac('sha256', secret).update(`v0:${at}:${content}`).digest('hex')}`,
  }),
};

const now = (): number => Math.floor(Date.now() / 1000);

async function signed(preset: PresetName, content = body, at = now()): Promise<Fields> {
  return { 'content-type': json, ...((await signs[preset]?.(content, at)) ?? assert.fail(preset)) };
}

async function post(url: string, headers: Fields, content: string | Uint8Array = body) {
  const answer = await fetch(`${url}/webhooks`, { method: 'POST', headers, body: content });
  return [answer.status, await answer.text()] as const;
}

// They tell of what they refuse.
before(() => void mock.method(console, 'warn', () => undefined));

for (const [framework, start] of Object.entries(frameworks)) {
  describe(`the example for ${framework}`, () => {
    const handled: VerifiedMessage[] = [];
    const apps = new Map<PresetName, Running>();
    const urlOf = (preset: PresetName): string => apps.get(preset)?.url ?? assert.fail(preset);

    before(async () => {
      for (const preset of Object.keys(signs) as PresetName[]) {
        apps.set(preset, await start(preset, (message) => void handled.push(message)));
      }
    });
    after(() => {
      for (const { close } of apps.values()) close();
    });

    test('accepts what each of the senders signed, once, and as it came', async () => {
      for (const [preset, key, type] of [
        ['standard', 'msg_1', 'products.created'],
        ['stripe', 'evt_1', 'products.created'],
        ['github', 'dlv-1', 'issues.opened'],
        ['slack', undefined, 'products.created'],
      ] as const) {
        const headers = await signed(preset);
        handled.length = 0;
        assert.deepEqual(await post(urlOf(preset), headers), [204, '']);
        assert.deepEqual(await post(urlOf(preset), headers), [204, '']);
        assert.equal(handled.length, 1, preset);
        assert.equal(handled[0]?.text(), body);
        assert.equal(handled[0]?.type, type);
        if (key !== undefined) assert.equal(handled[0]?.dedupeKey, key);
      }
    });

    test('refuses what was changed, what is old, and what nobody signed', async () => {
      handled.length = 0;
      for (const preset of Object.keys(signs) as PresetName[]) {
        const [status, text] = await post(urlOf(preset), await signed(preset), body.replace('1.0', '2.0'));
        assert.deepEqual(
          [status, JSON.parse(text)],
          [400, { error: 'invalid signature', code: 'signature_invalid', reason: 'no-match' }],
        );
        assert.equal((await post(urlOf(preset), { 'content-type': json }))[0], 400);
      }
      const stale = await post(urlOf('stripe'), await signed('stripe', body, now() - 400));
      assert.match(stale[1], /"reason":"stale"/);
      assert.equal(handled.length, 0);
    });

    test('answers a challenge', async () => {
      const challenge = '{"type":"url_verification","challenge":"c-1"}';
      const answer = await post(urlOf('slack'), await signed('slack', challenge), challenge);
      assert.deepEqual(answer, [200, '{"challenge":"c-1"}']);
    });

    test('takes any media type and content, none of them too', async () => {
      const types = [json, 'application/x-www-form-urlencoded', 'text/plain', 'x/y; z'];
      const large = `"${'x'.repeat(2 * 1024 * 1024)}"`;
      const cases = types.flatMap((type) =>
        ['no JSON', 'a=1&b=2', '', '\u0000ü'].map((content) => ({ type, content })),
      );
      for (const { type, content } of [...cases, { type: json, content: large }]) {
        const headers = { ...(await signed('slack', content)), 'content-type': type };
        assert.deepEqual(
          await post(urlOf('slack'), headers, content),
          [204, ''],
          `${type} ${content.slice(0, 9)}`,
        );
      }
    });

    test('takes content without a Content-Type', async () => {
      const headers = { ...(await signed('github')), 'content-length': String(body.length), host: 'shop' };
      const fields = Object.entries(headers).filter(([name]) => name !== 'content-type');
      const socket = connect(Number(new URL(urlOf('github')).port), '127.0.0.1');
      const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
      socket.write(`POST /webhooks HTTP/1.1\r\nconnection: close\r\n${lines}\r\n${body}`);
      const [head] = (await once(socket, 'data')) as [Buffer];
      assert.match(head.toString(), /^HTTP\/1\.1 204 /);
      socket.destroy();
    });

    test('leaves its parsers to the other routes', async () => {
      const headers = { 'content-type': json };
      const answer = await fetch(`${urlOf('standard')}/orders`, {
        method: 'POST',
        headers,
        body: '{"a": 1}',
      });
      assert.deepEqual(await answer.json(), { a: 1 });
    });
  });
}

test('the example for hono answers plain Requests without a server', async () => {
  const app = createHono({ sender: 'standard', secrets }, () => undefined);
  const headers = await signed('standard');
  for (const [content, status] of [
    [body, 204],
    [`${body} `, 400],
  ] as const) {
    const request = new Request('https://shop.example/webhooks', { method: 'POST', headers, body: content });
    assert.equal((await app.fetch(request)).status, status);
  }
});

describe('a body parser that replaced the raw body is found out', () => {
  /** What came of each request: the message of what was thrown, or the hint. */
  const said: string[] = [];
  const store = memoryStore();

  async function tell(rawBody: RawBody, headers: Parameters<typeof receive>[1]): Promise<number> {
    try {
      const received = await receive(rawBody, headers, { sender: 'standard', secrets, store });
      said.push(received.outcome === 'refused' ? (received.hint ?? received.reason) : received.outcome);
      return received.status;
    } catch (error) {
      said.push(error instanceof Error ? error.message : String(error));
      return 500;
    }
  }

  async function askOnce(server: Server, content = body): Promise<string> {
    const { url, close } = await runningOf(server);
    said.length = 0;
    await post(url, await signed('standard', content), content);
    close();
    return said.join();
  }

  test('in Express, where express.json() stands before', async () => {
    const remedy = /body parser.*express\.raw\(\{ type: \(\) => true, inflate: false \}\)/;
    for (const [bodyOf, expected] of [
      [(request: { body?: unknown }) => request.body, remedy],
      [(request: unknown) => request, /body was already read/],
      [(request: { body?: unknown }) => JSON.stringify(request.body), /a body parser parsed it/],
    ] as const) {
      const app = express();
      app.use(express.json());
      app.post('/webhooks', async (request, response) => {
        response.status(await tell(bodyOf(request) as RawBody, request.headers)).end();
      });
      assert.match(await askOnce(app.listen(0, '127.0.0.1')), expected);
    }
  });

  test('in Express, where express.raw() does not take the media type', async () => {
    for (const [type, expected] of [
      [() => false, /no body parser read it/],
      [() => true, /^accepted$/],
    ] as const) {
      const app = express();
      app.post('/webhooks', express.raw({ type, inflate: false }), async (request, response) => {
        response.status(await tell(request.body as RawBody, request.headers)).end();
      });
      assert.match(await askOnce(app.listen(0, '127.0.0.1')), expected);
    }
  });

  test('in Fastify, where its own parser ran', async () => {
    const app = fastify();
    app.post('/webhooks', async (request, reply) =>
      reply.code(await tell(request.body as RawBody, request.headers)).send(),
    );
    await app.listen({ port: 0, host: '127.0.0.1' });
    assert.match(await askOnce(app.server), /body parser.*parseAs: 'buffer'/);
  });

  test('in Hono, where something has read the body as text', async () => {
    for (const [bodyOf, expected] of [
      [(context: { req: { raw: Request } }) => context.req.raw, /body was already read.*Hono/],
      // What Hono kept is the text, which has lost its byte order mark.
      [
        (context: { req: { arrayBuffer(): Promise<ArrayBuffer> } }) => context.req.arrayBuffer(),
        /serialized again/,
      ],
    ] as const) {
      const app = new Hono();
      app.use(async (context, next) => {
        await context.req.text();
        await next();
      });
      app.post('/webhooks', async (context) => {
        await tell(await bodyOf(context), context.req.raw.headers);
        return context.text('told');
      });
      const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server;
      assert.match(await askOnce(server, `\ufeff${body}`), expected);
    }
  });
});

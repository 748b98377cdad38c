/**
 * Receivers of webhooks, each as the example of its library tells, and judged by the scheme that it takes. Express stands under those whose
 * example does.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scheme } from '../../conduct/webhooks/signature.ts';
import { fetchPackages, type Started, startOnPort } from './program.ts';

export type Receiver = {
  readonly name: string;
  readonly version: string;
  readonly scheme: Scheme;
  /** The path of its deliveries. */
  readonly path: string;
  readonly start: (folder: string) => Promise<Started>;
};

/** 24 octets, which is what the examples have. */
export const receiverSecret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;

const express = 'express@5.3.0';
const listen = "app.listen(Number(process.env.PORT), '127.0.0.1');";
const secret = `const secret = ${JSON.stringify(receiverSecret)};`;

/** https://docs.svix.com/receiving/verifying-payloads/how, with Express; the library of Standard Webhooks has the same calls. */
const verifyByExpress = (library: string, message: string): readonly string[] => [
  `import { Webhook } from '${library}';`,
  "import express from 'express';",
  secret,
  'const app = express();',
  "app.post('/webhook', express.raw({ type: 'application/json' }), (req, res) => {",
  '  const wh = new Webhook(secret);',
  '  let msg;',
  '  try {',
  `    ${message};`,
  '  } catch (err) {',
  '    return res.status(400).json({});',
  '  }',
  '  return res.json({});',
  '});',
  listen,
];

/** https://docs.stripe.com/webhooks/quickstart, for Node. */
const stripeByExpress: readonly string[] = [
  "import { Stripe } from 'stripe';",
  "import express from 'express';",
  "const stripe = new Stripe('sk_test_conduct');",
  `const endpointSecret = ${JSON.stringify(receiverSecret)};`,
  'const app = express();',
  "app.post('/webhook', express.raw({ type: 'application/json' }), (request, response) => {",
  '  let event = request.body;',
  '  if (endpointSecret) {',
  "    const signature = request.headers['stripe-signature'];",
  '    try {',
  '      event = stripe.webhooks.constructEvent(request.body, signature, endpointSecret);',
  '    } catch (err) {',
  '      return response.sendStatus(400);',
  '    }',
  '  }',
  '  switch (event.type) {',
  "    case 'payment_intent.succeeded':",
  '      break;',
  '    default:',
  '      break;',
  '  }',
  '  response.send();',
  '});',
  listen,
];

/** The usage of its README. */
const octokitByNode: readonly string[] = [
  "import { Webhooks, createNodeMiddleware } from '@octokit/webhooks';",
  "import { createServer } from 'node:http';",
  `const webhooks = new Webhooks({ secret: ${JSON.stringify(receiverSecret)} });`,
  'webhooks.onAny(({ id, name, payload }) => {});',
  "createServer(createNodeMiddleware(webhooks)).listen(Number(process.env.PORT), '127.0.0.1');",
];

export const receivers: readonly Receiver[] = [
  receiver(
    'standardwebhooks',
    '1.1.1',
    verifyByExpress('standardwebhooks', 'msg = wh.verify(req.body, req.headers)'),
    { scheme: 'standard' },
  ),
  receiver(
    'svix',
    '2.5.0',
    verifyByExpress('svix', 'wh.verify(req.body, req.headers); msg = JSON.parse(req.body)'),
    { scheme: 'svix' },
  ),
  receiver('stripe', '23.1.0', stripeByExpress, { scheme: 'stripe' }),
  receiver('@octokit/webhooks', '14.2.0', octokitByNode, { scheme: 'github', path: '/api/github/webhooks' }),
];

type Place = { readonly scheme: Scheme; readonly path?: string };

function receiver(
  name: string,
  version: string,
  lines: readonly string[],
  { scheme, path = '/webhook' }: Place,
): Receiver {
  return {
    ...{ name, version, scheme, path },
    start: async (folder) => {
      await fetchPackages(folder, [`${name}@${version}`, express]);
      const file = join(folder, 'receiver.mjs');
      writeFileSync(file, `${lines.join('\n')}\n`);
      return startOnPort(process.execPath, [file]);
    },
  };
}

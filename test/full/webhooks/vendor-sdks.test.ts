/**
 * Libraries of vendors judge the presets: they believe the messages that the default tier signs, and refuse them with another body. The
 * libraries take 45 MB: they are a package of their own with its own lockfile (test/full/webhooks/vendor-sdks), installed here, and these
 * tests skip where the registry cannot be reached. HubSpot's and Square's, of 89 MB, were asked by hand.
 */
import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { cpSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { installLocked } from '../../harness/npm-install.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import {
  pushed,
  type Sent,
  secret,
  url,
  type VendorName,
  vendorsAt,
} from '../../webhooks/presets/vendor-messages.ts';

const folder = temporaryFolder();
let missing = '';

before(
  async () => {
    cpSync(fileURLToPath(new URL('vendor-sdks', import.meta.url)), folder, { recursive: true });
    missing = await installLocked(folder);
  },
  { timeout: 5 * 60_000 },
);

/** Linear's library wants the time of the message to be in it. */
const bodyNow = () => JSON.stringify({ id: 'evt_1', type: 'a.b', webhookTimestamp: Date.now() });
// biome-ignore lint/suspicious/noExplicitAny: packages without declarations here.
const load = (name: string): any => createRequire(join(folder, 'x.js'))(name);

/** Signed now: Paddle's library believes a signature for five seconds. */
const vendors = () => vendorsAt(Math.floor(Date.now() / 1000));
const publicKeyOf = (name: VendorName) => vendors()[name].publicKey;

/** Whether the library believes the message. It may throw for one that it does not. */
type Judge = (sent: Sent) => unknown;

const judges: Partial<Readonly<Record<VendorName, Judge>>> = {
  discord: ({ body: text, fields }) =>
    load('discord-interactions').verifyKey(
      ...[text, fields['x-signature-ed25519'], fields['x-signature-timestamp'], publicKeyOf('discord')],
    ),
  'google-pubsub': async ({ fields: { authorization = '' } }) => {
    const { OAuth2Client } = load('google-auth-library');
    const key = createPublicKey({ key: publicKeyOf('google-pubsub') as object, format: 'jwk' });
    const certificates = { g1: key.export({ format: 'pem', type: 'spki' }) };
    const issuers = ['https://accounts.google.com'];
    const token = authorization.slice('Bearer '.length);
    const { audience } = pushed;
    return new OAuth2Client().verifySignedJwtWithCertsAsync(token, certificates, audience, issuers);
  },
  line: ({ body: text, fields }) =>
    load('@line/bot-sdk').validateSignature(text, secret, fields['x-line-signature']),
  linear: ({ body: text, fields }) => {
    const { LinearWebhookClient } = load('@linear/sdk/webhooks');
    return new LinearWebhookClient(secret).verify(Buffer.from(text), fields['linear-signature']);
  },
  paddle: ({ body: text, fields }) => {
    // The constructor is what gives the library its cryptography.
    const { webhooks } = new (load('@paddle/paddle-node-sdk').Paddle)('none');
    return webhooks.isSignatureValid(text, secret, fields['paddle-signature']);
  },
  qstash: ({ body: text, fields }) => {
    const { Receiver } = load('@upstash/qstash');
    const receiver = new Receiver({ currentSigningKey: 'the current one', nextSigningKey: secret });
    return receiver.verify({ signature: fields['upstash-signature'], body: text, url });
  },
  sanity: ({ body: text, fields }) =>
    load('@sanity/webhook').isValidSignature(text, fields['sanity-webhook-signature'], secret),
  sendgrid: ({ body: text, fields }) => {
    const hook = new (load('@sendgrid/eventwebhook').EventWebhook)();
    const key = hook.convertPublicKeyToECDSA(publicKeyOf('sendgrid'));
    const [signature, time] = ['signature', 'timestamp'].map(
      (name) => fields[`x-twilio-email-event-webhook-${name}`],
    );
    return hook.verifySignature(key, text, signature, time);
  },
  sns: ({ body: text }) =>
    new Promise((resolve, reject) => {
      const https = load('node:https');
      const { get } = https;
      // The certificate is AWS's to serve: the library gets the key of the tests in its place.
      https.get = (_url: string, answered: (response: object) => void) => {
        const key = createPublicKey({ key: publicKeyOf('sns') as object, format: 'jwk' });
        const pem = String(key.export({ format: 'pem', type: 'spki' }));
        answered(Object.assign(Readable.from([pem]), { statusCode: 200 }));
        return { on: () => undefined };
      };
      new (load('sns-validator'))().validate(JSON.parse(text), (error: Error | null, found: object) => {
        https.get = get;
        if (error === null) resolve(found);
        else reject(error);
      });
    }),
  workos: ({ body: text, fields }) => {
    const { WorkOS } = load('@workos-inc/node');
    const given = { payload: JSON.parse(text), sigHeader: fields['workos-signature'], secret };
    return new WorkOS('sk_none').webhooks.verifyHeader(given);
  },
};

for (const [name, judge] of Object.entries(judges) as [VendorName, Judge][]) {
  test(`the library of the vendor believes what the preset does: ${name}`, async (t) => {
    if (missing !== '') return t.skip(missing);
    const body = bodyNow();
    const sent = vendors()[name].send(body, secret);
    const believes = async (each: Sent) => {
      try {
        return Boolean(await judge(each));
      } catch {
        return false;
      }
    };
    assert.equal(await believes(sent), true);
    const other = vendors()[name].send(body, 'another secret of the vendor');
    const { signsNoContent = false } = vendors()[name];
    const altered = signsNoContent ? other : { ...sent, body: body.replace('evt_1', 'evt_2') };
    assert.equal(await believes(altered), false);
  });
}

#!/usr/bin/env bash
# A right Standard Webhooks message before the verifiers of standardwebhooks, Svix and WorkOS, with its fields as a `Headers` of fetch and as an object.
#
# Guess: a verifier that takes `headers` takes the `Headers` of a fetch request, and returns the message.
# Seen: standardwebhooks 1.1.1 and svix 2.5.0 read own members, of which `Headers` has none: "Missing required headers". With
# Object.fromEntries(headers) both accept; svix 1.99.1 returns the message then, and svix 2.5.0 nothing. The library of WorkOS (12.3.0) reads
# the time `t` in milliseconds, where others that sign `t=...,v1=...` write seconds: these are outside its tolerance.
#
# Needs node 22 or newer, npm and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --ignore-scripts --no-audit --no-fund standardwebhooks@1.1.1 svix@2.5.0 svix1@npm:svix@1.99.1 @workos-inc/node@12.3.0
cat >look.mjs <<'JS'
import { createHmac } from 'node:crypto';
import { WorkOS } from '@workos-inc/node';
import * as standardwebhooks from 'standardwebhooks';
import * as svix from 'svix';
import * as svix1 from 'svix1';

const key = Buffer.from('the secret of an endpoint');
const secret = `whsec_${key.toString('base64')}`;
const body = '{"type":"products.created"}';
const seconds = Math.floor(Date.now() / 1000);
const sign = (text, encoding) => createHmac('sha256', key).update(text).digest(encoding);
const headers = new Headers({
  'webhook-id': 'evt_1',
  'webhook-timestamp': String(seconds),
  'webhook-signature': `v1,${sign(`evt_1.${seconds}.${body}`, 'base64')}`,
});
const libraries = { 'standardwebhooks 1.1.1': standardwebhooks, 'svix 1.99.1': svix1, 'svix 2.5.0': svix };
for (const [name, { Webhook }] of Object.entries(libraries)) {
  for (const [form, fields] of Object.entries({ Headers: headers, object: Object.fromEntries(headers) })) {
    try {
      const returned = new Webhook(secret).verify(body, fields);
      console.log(`${name}, ${form}: returns ${JSON.stringify(returned) ?? 'nothing'}`);
    } catch (error) {
      console.log(`${name}, ${form}: throws ${error.message}`);
    }
  }
}
const { webhooks } = new WorkOS('sk_none');
for (const [unit, time] of [['seconds', seconds], ['milliseconds', Date.now()]]) {
  const sigHeader = `t=${time}, v1=${sign(`${time}.${body}`, 'hex')}`;
  const verdict = await webhooks
    .verifyHeader({ payload: body, sigHeader, secret: key.toString() })
    .catch((error) => error.message);
  console.log(`WorkOS 12.3.0, ${unit}: ${verdict}`);
}
JS
node look.mjs >seen
cat seen
cat >expected <<'TEXT'
standardwebhooks 1.1.1, Headers: throws Missing required headers
standardwebhooks 1.1.1, object: returns {"type":"products.created"}
svix 1.99.1, Headers: throws Missing required headers
svix 1.99.1, object: returns {"type":"products.created"}
svix 2.5.0, Headers: throws Missing required headers
svix 2.5.0, object: returns nothing
WorkOS 12.3.0, seconds: Timestamp outside the tolerance zone
WorkOS 12.3.0, milliseconds: true
TEXT
diff expected seen

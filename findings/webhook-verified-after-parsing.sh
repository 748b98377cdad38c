#!/usr/bin/env bash
# A webhook of WorkOS, signed over its octets as its documentation says, before the method of its library that verifies it.
#
# Guess: the library takes the body as it came, since the signature is over its octets.
# Seen: @workos-inc/node 8.13.0 serializes what it is given: only the parsed value verifies, and only where JSON.stringify writes the very
# octets that were signed. A body with `1.0`, a space or an escaped letter is refused in every form, though its signature is right.
#
# Needs node 22 or newer, npm and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --ignore-scripts --no-audit --no-fund @workos-inc/node@8.13.0
cat >look.mjs <<'JS'
import { createHmac } from 'node:crypto';
import { WorkOS } from '@workos-inc/node';

const secret = 'the secret of an endpoint';
const { webhooks } = new WorkOS('sk_none');
for (const text of ['{"id":"evt_1"}', '{"id":"evt_1","rate":1.0}', '{"id": "evt_1"}', '{"id":"evt_1","name":"\\u00e9"}']) {
  const time = Date.now();
  const signature = createHmac('sha256', secret).update(`${time}.${text}`).digest('hex');
  const believed = [];
  for (const [form, payload] of Object.entries({ parsed: JSON.parse(text), text, octets: Buffer.from(text) })) {
    const sigHeader = `t=${time}, v1=${signature}`;
    if (await webhooks.verifyHeader({ payload, sigHeader, secret }).catch(() => false)) believed.push(form);
  }
  console.log(`${text}: believed as ${believed.join(' and ') || 'nothing'}`);
}
JS
node look.mjs >seen
cat seen
cat >expected <<'TEXT'
{"id":"evt_1"}: believed as parsed
{"id":"evt_1","rate":1.0}: believed as nothing
{"id": "evt_1"}: believed as nothing
{"id":"evt_1","name":"\u00e9"}: believed as nothing
TEXT
diff expected seen

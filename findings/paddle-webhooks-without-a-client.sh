#!/usr/bin/env bash
# A webhook of Paddle before the class that verifies it, which the package exports beside its client.
#
# Guess: verifying needs a secret and no client of the API, so `new Webhooks()` is enough.
# Seen: @paddle/paddle-node-sdk 3.10.0 says false for a right signature until a client was constructed anywhere in the program: its
# constructor is what gives the package its cryptography. Nothing is thrown.
#
# Needs node 22 or newer, npm and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --ignore-scripts --no-audit --no-fund @paddle/paddle-node-sdk@3.10.0
cat >look.mjs <<'JS'
import { createHmac } from 'node:crypto';
import { Paddle, Webhooks } from '@paddle/paddle-node-sdk';

const secret = 'the secret of a destination';
const body = '{"event_id":"evt_1"}';
const believes = () => {
  const time = Math.floor(Date.now() / 1000);
  const signature = createHmac('sha256', secret).update(`${time}:${body}`).digest('hex');
  return new Webhooks().isSignatureValid(body, secret, `ts=${time};h1=${signature}`);
};
console.log(`before a client: ${await believes()}`);
new Paddle('none');
console.log(`after one: ${await believes()}`);
JS
node look.mjs 2>/dev/null | grep -E '^(before|after) ' >seen
cat seen
cat >expected <<'TEXT'
before a client: false
after one: true
TEXT
diff expected seen

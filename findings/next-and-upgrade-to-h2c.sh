#!/usr/bin/env bash
# A GET with `Upgrade: h2c`, as java.net.http.HttpClient sends to http URLs by default and curl with --http2, at a route of Next.js.
#
# Guess: a server that does not speak h2c ignores the Upgrade and answers over HTTP/1.1 (RFC 9110 section 7.8).
# Seen (next 16.4.6, next start): the connection ends without an answer, for h2c and for every other protocol. Without the field the
# answer is 200. A server of node:http that has a listener for `upgrade`, as Next.js has, decides itself what becomes of such requests.
#
# Needs node, npm and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm pkg set type=module
npm install --silent --no-audit --no-fund --ignore-scripts next@16.4.6 react@19.3.1 react-dom@19.3.1
mkdir -p app/hello
cat >app/layout.js <<'JS'
export default function Layout({ children }) {
  return children;
}
JS
cat >app/hello/route.js <<'JS'
export const dynamic = 'force-dynamic';
export const GET = () => new Response('hello');
JS
export NEXT_TELEMETRY_DISABLED=1
node node_modules/next/dist/bin/next build >log 2>&1 || { cat log; exit 1; }
cat >look.mjs <<'JS'
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';

const free = createServer().listen(0, '127.0.0.1');
await once(free, 'listening');
const { port } = free.address();
free.close();
const next = spawn(process.execPath, ['node_modules/next/dist/bin/next', 'start', '-H', '127.0.0.1', '-p', port], {
  stdio: 'ignore',
});

/** The first line of the answer. */
async function ask(fields) {
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET /hello HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${fields}\r\n`);
  let text = '';
  for await (const chunk of socket) text += chunk;
  return text === '' ? 'no answer' : text.split('\r\n')[0];
}

try {
  for (let tries = 0; ; tries += 1) {
    const answered = await ask('Connection: close\r\n').catch(() => undefined);
    if (answered !== undefined || tries === 100) break;
    await setTimeout(200);
  }
  const h2c = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n';
  console.log(`plain: ${await ask('Connection: close\r\n')}`);
  console.log(`Upgrade: h2c: ${await ask(h2c)}`);
  console.log(`Upgrade: example/1: ${await ask('Connection: Upgrade\r\nUpgrade: example/1\r\n')}`);
} finally {
  next.kill();
}
JS
node look.mjs >seen
cat >expected <<'TEXT'
plain: HTTP/1.1 200 OK
Upgrade: h2c: no answer
Upgrade: example/1: no answer
TEXT
cat seen
diff expected seen

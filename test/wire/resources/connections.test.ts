/** `/meta/connections` (§4.21.8) over the running program: what is open is listed with what it carries, and leaves the list when it ends. */
import assert from 'node:assert/strict';
import { connect, createServer, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import WebSocket from 'ws';
import { adminKey } from '../../harness/exchange.ts';
import { listen } from '../../harness/listening.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { eventually, until } from '../../harness/until.ts';

type Shown = {
  id: string;
  kind: string;
  principal: string | null;
  peer: string;
  about: string;
  octets: number;
};

let program: RunningServer;

before(async () => {
  program = await startServer({
    env: {
      COMITY_TUNNEL: 'on',
      COMITY_TUNNEL_PORTS: '1-65535',
      COMITY_EGRESS_ALLOW: '127.0.0.0/8',
      COMITY_STREAM_HEARTBEAT_MS: '100',
    },
  });
});

after(() => program?.stop());

async function open(): Promise<readonly Shown[]> {
  const { status, body } = await program.send('GET', '/api/v1/meta/connections');
  assert.equal(status, 200, body);
  return JSON.parse(body).items;
}

const untilOpen = (kind: string) =>
  eventually(async () => (await open()).find((each) => each.kind === kind), `a ${kind} is listed`);
const untilNone = () => until(async () => (await open()).length === 0, 'all have left the list');
const create = async (): Promise<void> => {
  const json = { title: 'Carried', published: true };
  assert.equal((await program.send('POST', '/api/v1/articles', { json })).status, 201);
};

test('lists an event stream with its query and what it has sent', async () => {
  assert.deepEqual(await open(), []);
  const leaving = new AbortController();
  const answer = await fetch(`${program.url}/api/v1/events?type=articles.created`, {
    headers: { Accept: 'text/event-stream' },
    signal: leaving.signal,
  });
  const stream = await untilOpen('stream');
  assert.deepEqual(
    [stream.principal, stream.peer, stream.about, stream.octets],
    [null, '127.0.0.1', 'type=articles.created', 0],
  );
  await create();
  await until(async () => (await untilOpen('stream')).octets > 100);
  leaving.abort();
  await answer.body?.cancel().catch(() => undefined);
  await untilNone();
});

test('lists a WebSocket with its patterns and what it has sent', async () => {
  const socket = new WebSocket(`${program.url.replace('http', 'ws')}/api/v1/realtime`, 'comity.v1', {
    headers: { 'X-API-Key': adminKey },
  });
  await new Promise((resolve) => socket.on('open', resolve));
  socket.send(JSON.stringify({ subscribe: ['articles.*', 'notes.created'] }));
  await until(async () => (await untilOpen('websocket')).about === 'articles.* notes.created');
  await create();
  await until(async () => (await untilOpen('websocket')).octets > 100);
  assert.notEqual((await untilOpen('websocket')).principal, null);
  socket.close();
  await untilNone();
});

test('lists a tunnel with its destination and what it carries in both directions', async (t) => {
  const echo = await listen(
    createServer((socket) => socket.pipe(socket)),
    t,
  );
  const destination = `127.0.0.1:${echo.port}`;
  const socket: Socket = connect(program.port, '127.0.0.1');
  let received = '';
  socket.on('data', (octets) => {
    received += String(octets);
  });
  socket.write(
    `CONNECT ${destination} HTTP/1.1\r\nHost: ${destination}\r\nProxy-Authorization: Bearer ${adminKey}\r\n\r\n`,
  );
  await until(() => received.includes('\r\n\r\n'));
  assert.match(received, /^HTTP\/1\.1 200/);
  socket.write('twelve bytes');
  await until(() => received.endsWith('twelve bytes'));
  const tunnel = await untilOpen('tunnel');
  assert.deepEqual([tunnel.about, tunnel.octets], [`connect ${destination}`, 24]);
  socket.destroy();
  await untilNone();
});

test('drops a stream whose credential has ended', async () => {
  const made = await program.send('POST', '/api/v1/keys', {
    json: { name: 'reader', kind: 'secret', scopes: ['read'] },
  });
  const { id, key } = made.json() as { id: string; key: string };
  const answer = await fetch(`${program.url}/api/v1/events`, {
    headers: { Accept: 'text/event-stream', 'X-API-Key': key },
  });
  assert.notEqual((await untilOpen('stream')).principal, null);
  assert.equal((await program.send('DELETE', `/api/v1/keys/${id}`)).status, 204);
  await answer.text();
  await untilNone();
});

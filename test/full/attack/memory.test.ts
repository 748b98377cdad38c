/**
 * Clients that make the program hold memory and are slow to let it go: what is under way stays within the budget, health is answered, and
 * others are served meanwhile. Each program has 512 MiB.
 */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { endHeaders, endStream, frameTypes, setting } from '../../../conduct/frames.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { get, request } from '../../wire/http2/raw-session.ts';
import { type Attacked, startAttacked } from './attacked-program.ts';

const MiB = 1024 * 1024;
const rows = 40;
const rowBytes = 900_000;
/** Streams, and WebSockets, of one address that read nothing. */
const readers = 250;

/** A connection that sends what it is given and counts what it is sent; `stall` reads nothing any more. */
class SlowClient {
  readonly socket: Socket;
  #bytes = 0;
  #beginning = '';
  #closed = false;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('error', () => this.socket.destroy());
    this.socket.on('close', () => {
      this.#closed = true;
    });
    this.socket.on('data', (chunk: Buffer) => {
      this.#bytes += chunk.length;
      if (this.#beginning.length < 64) this.#beginning += chunk.toString('latin1', 0, 64);
    });
  }

  get status(): number {
    return Number(/^HTTP\/1\.1 (\d{3})/.exec(this.#beginning)?.[1] ?? 0);
  }

  get bytes(): number {
    return this.#bytes;
  }

  get closed(): boolean {
    return this.#closed;
  }

  stall(): void {
    this.socket.pause();
  }
}

function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

/** Looks again each time a request was answered, so that no time is named. */
async function until(program: RunningServer, fits: () => boolean | Promise<boolean>): Promise<void> {
  for (let looks = 0; looks < 2000; looks += 1) {
    if (await fits()) return;
    await program.send('GET', '/health/ready');
  }
  assert.fail('it never came to be so');
}

async function heldBytes(program: RunningServer): Promise<number> {
  const { body } = await program.send('GET', '/metrics');
  let bytes = 0;
  for (const [, number] of body.matchAll(/^comity_memory_bytes\{use="[a-z]+"\} (\d+)$/gm))
    bytes += Number(number);
  return bytes;
}

async function budgetOf(program: RunningServer): Promise<number> {
  const { body } = await program.send('GET', '/metrics');
  return Number(/^comity_memory_bytes_max (\d+)$/m.exec(body)?.[1] ?? 0);
}

/** The attack is over: nothing stays counted, and the program serves as before. */
async function assertRecovers({ program }: Attacked, clients: readonly SlowClient[]): Promise<void> {
  assert.ok((await heldBytes(program)) <= (await budgetOf(program)));
  for (const { socket } of clients) socket.destroy();
  await until(program, async () => (await heldBytes(program)) === 0);
  const made = await program.send('POST', '/api/v1/categories', { json: { name: 'after' } });
  assert.equal(made.status, 201);
}

test('content that is received and not finished stays within the budget', async (t) => {
  const attacked = await startAttacked(t);
  const { program } = attacked;
  const announced = 25 * MiB;
  // All but the end, so that none is answered for being whole.
  const sent = announced - 256 * 1024;
  const chunk = Buffer.alloc(256 * 1024, 'x');
  const clients = many(60, () => new SlowClient(program.port));
  let settled = 0;
  for (const client of clients) {
    client.socket.write(
      `POST /api/v1/webhooks/billing HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: ${announced}\r\n\r\n`,
    );
    let left = sent;
    const goOn = (): void => {
      while (left > 0 && !client.socket.destroyed) {
        left -= chunk.length;
        if (!client.socket.write(chunk)) return;
      }
    };
    client.socket.on('drain', goOn);
    const settle = (): void => {
      settled += 1;
    };
    const whenAllIsSent = setInterval(() => {
      if (left > 0 && !client.closed && client.status === 0) return;
      clearInterval(whenAllIsSent);
      settle();
    }, 20);
    goOn();
  }
  await until(program, () => settled === clients.length);
  const statuses = new Set(clients.map(({ status }) => status));
  assert.ok(statuses.has(503), `answered ${[...statuses].join()}`);
  assert.ok(statuses.has(0), 'those that found room are still waited for');
  await attacked.assertUnharmed();
  await assertRecovers(attacked, clients);
});

test('answers that wait behind closed windows of HTTP/2 stay within the budget', async (t) => {
  const attacked = await startAttacked(t);
  const { program } = attacked;
  // Made once, for the first request: that is another test's subject.
  await program.send('GET', '/openapi.json');
  await attacked.health();
  const streams = 250;
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
  const windowZero = setting(4, 0);
  const settings = Buffer.concat([
    Buffer.from([0, 0, windowZero.length, frameTypes.settings, 0, 0, 0, 0, 0]),
    windowZero,
  ]);
  const asked = many(streams, (index) =>
    request(2 * index + 1, get('/openapi.json'), endStream | endHeaders),
  );
  const clients = many(40, () => new SlowClient(program.port));
  for (const client of clients) {
    client.socket.write(Buffer.concat([preface, settings, ...asked]));
    // A header section takes at least 20 octets: every request was answered, or its connection is gone.
    await until(program, () => client.closed || client.bytes > streams * 20);
  }
  await attacked.assertUnharmed();
  await assertRecovers(attacked, clients);
});

const list = '/api/v1/categories';

/** @returns their ids */
async function withRows(program: RunningServer): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < rows; index += 1) {
    const name = String(index).padStart(rowBytes, '-');
    const made = await program.send('POST', list, { json: { name } });
    assert.equal(made.status, 201, made.body.slice(0, 200));
    ids.push(String(made.json().id));
  }
  return ids;
}

/** The first page by ten at once, then one walk to the end. */
async function listTenTimes(program: RunningServer): Promise<void> {
  const page = async (from: string) => {
    const answer = await program.send('GET', `${list}?limit=1000${from}`);
    assert.equal(answer.status, 200, answer.body.slice(0, 200));
    assert.ok(answer.body.length < 6 * MiB, `${answer.body.length} octets`);
    return answer.json() as { items: unknown[]; nextCursor: string | null };
  };
  const [first] = await Promise.all(many(10, () => page('')));
  let items = first?.items.length ?? 0;
  for (let cursor = first?.nextCursor ?? null; cursor !== null; ) {
    const next = await page(`&cursor=${cursor}`);
    items += next.items.length;
    cursor = next.nextCursor;
  }
  assert.equal(items, rows);
}

test('long lists, their slow readers, event streams and WebSockets stay within the budget', async (t) => {
  const attacked = await startAttacked(t, {
    env: { COMITY_REALTIME_ATTEMPT_MS: '0', COMITY_STREAMS_PER_ADDRESS_MAX: '0' },
  });
  const { program } = attacked;
  const ids = await withRows(program);
  await attacked.health();

  await t.test('ten lists of everything at once', async () => {
    await listTenTimes(program);
    await attacked.assertUnharmed();
  });

  await t.test('connections that ask for ten long documents each and read nothing', async () => {
    // The kernel takes some megabytes for each; what is behind them waits in the program.
    const asked = many(10, (index) => `GET ${list}/${ids[index]} HTTP/1.1\r\nHost: a\r\n\r\n`).join('');
    const clients: SlowClient[] = [];
    await until(program, async () => {
      const client = new SlowClient(program.port);
      clients.push(client);
      client.socket.write(asked);
      client.socket.once('data', () => client.stall());
      const { body } = await program.send('GET', '/metrics');
      return body.includes('comity_memory_refusals_total{use="answers"}');
    });
    const other = await program.send('GET', `${list}/${ids[0]}`);
    assert.equal(other.status, 200, 'an administrator is served');
    await attacked.assertUnharmed();
    await assertRecovers(attacked, clients);
  });

  await t.test('250 event streams that read nothing, while another reads everything', async () => {
    const clients: SlowClient[] = [];
    for (let index = 0; index < readers; index += 1) {
      const client = new SlowClient(program.port);
      clients.push(client);
      client.socket.write(
        'GET /api/v1/events?after= HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n',
      );
      client.socket.once('data', () => client.stall());
      await until(program, () => client.status !== 0);
    }
    assert.deepEqual([...new Set(clients.map(({ status }) => status))], [200]);
    const reader = new SlowClient(program.port);
    reader.socket.write(
      `GET /api/v1/events?after= HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${adminKey}\r\n\r\n`,
    );
    await until(program, () => reader.bytes > rows * rowBytes);
    await attacked.assertUnharmed();
    // What they wait with is read once for all of them.
    assert.ok((await heldBytes(program)) < 8 * MiB);
    await assertRecovers(attacked, [...clients, reader]);
  });

  await t.test('250 WebSockets that catch up and read nothing, while another reads everything', async () => {
    const clients = many(readers, () => openSocket(program.port));
    await until(program, () => clients.every(({ status }) => status === 101));
    for (const client of clients) {
      client.stall();
      client.socket.write(subscription);
    }
    const reader = openSocket(program.port, `Authorization: Bearer ${adminKey}\r\n`);
    reader.socket.write(subscription);
    await until(program, () => reader.bytes > rows * rowBytes);
    await attacked.assertUnharmed();
    await assertRecovers(attacked, [...clients, reader]);
  });
});

test('event streams and WebSockets whose clients take nothing end by themselves and give their memory back', async (t) => {
  const attacked = await startAttacked(t, {
    env: { COMITY_ANSWER_STALL_TIMEOUT_MS: '500' },
  });
  const { program } = attacked;
  for (let index = 0; index < 8; index += 1) {
    const name = String(index).padStart(rowBytes, '-');
    assert.equal((await program.send('POST', list, { json: { name } })).status, 201);
  }
  const clients = many(10, () => new SlowClient(program.port));
  for (const client of clients) {
    client.socket.write('GET /api/v1/events?after= HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n');
    client.socket.once('data', () => client.stall());
  }
  const sockets = many(10, () => openSocket(program.port));
  await until(program, () => sockets.every(({ status }) => status === 101));
  for (const socket of sockets) {
    socket.stall();
    socket.socket.write(subscription);
  }
  await until(program, async () => (await heldBytes(program)) > 2 * rowBytes);
  await until(program, async () => (await heldBytes(program)) === 0);
  const { body } = await program.send('GET', '/metrics');
  assert.match(body, /^comity_faults_total\{kind="stream-cut"\} 10$/m);
  for (const { socket } of [...clients, ...sockets]) socket.destroy();
});

/** Everything of categories, from the oldest event kept. Masked by zeros. */
const subscription = ((): Buffer => {
  const text = Buffer.from('{"subscribe":["categories.*"],"after":""}');
  return Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]);
})();

function openSocket(port: number, fields = ''): SlowClient {
  const client = new SlowClient(port);
  client.socket.write(
    `GET /api/v1/realtime HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: comity.v1\r\n${fields}\r\n`,
  );
  return client;
}

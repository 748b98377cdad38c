/**
 * Three processes on one database, or three workers at one port, are one service: what one did, the others know; what two do at once, one
 * does. Requests to workers go to any of the three.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Answer } from '../../harness/exchange.ts';
import { listen } from '../../harness/listening.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { openRealtime } from '../../wire/realtime/realtime-client.ts';
import { readEvents } from '../../wire/resources/event-reader.ts';
import { sendToAll } from './fleet.ts';

const base = '/api/v1';
export const processes = 3;
const rounds = 10;

/** What serves, and what may be asked of each part. */
export type Service = { readonly running: readonly RunningServer[]; stop(): Promise<void> };

export const environment = {
  COMITY_REALTIME_ATTEMPT_MS: '0',
  COMITY_EGRESS_ALLOW: '127.0.0.0/8',
  COMITY_TUNNEL_PORTS: '1-65535',
};

let fleet: Service;
let categoryId: string;

const one = () => at(0);
const other = () => at(1);

function at(index: number): RunningServer {
  const program = fleet.running[index];
  if (program === undefined) throw new Error('a process is gone');
  return program;
}

function idOf(answer: Answer): string {
  assert.equal(answer.status, 201, answer.body);
  return String(answer.json().id);
}

function product(more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { name: 'Shared', price: 1, categoryId, ...more };
}

async function create(program: RunningServer, more?: Readonly<Record<string, unknown>>): Promise<Answer> {
  const answer = await program.send('POST', `${base}/products`, { json: product(more) });
  assert.equal(answer.status, 201, answer.body);
  return answer;
}

const namesOf = (answer: Answer) => (answer.json().items as { name: string }[]).map(({ name }) => name);

function statuses(answers: readonly Answer[]): readonly number[] {
  return answers.map(({ status }) => status).sort();
}

export function manySuite(title: string, start: () => Promise<Service>): void {
  describe(title, () => {
    before(async () => {
      fleet = await start();
      categoryId = idOf(await one().send('POST', `${base}/categories`, { json: { name: 'C' } }));
    });
    after(() => fleet?.stop());
    describe('a write on one process', () => {
      writeTests();
      eventTests();
    });
    describe('what several processes do at once', () => {
      raceTests();
      constraintTests();
    });
    describe('a connection to one process', connectionTests);
  });
}

function writeTests(): void {
  it('is read on every other at once, changed and deleted too', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const made = await create(at(round % processes), { name: `Round ${round}` });
      const path = String(made.headers.location);
      for (const answer of await sendToAll(fleet.running, 'GET', path)) {
        assert.equal(answer.status, 200);
        assert.equal(answer.headers.etag, made.headers.etag);
        assert.equal(answer.body, made.body);
      }
      const changed = await at((round + 1) % processes).send('PATCH', path, { json: { stock: round } });
      for (const answer of await sendToAll(fleet.running, 'GET', path)) {
        assert.equal(answer.headers.etag, changed.headers.etag);
      }
      assert.equal((await at((round + 2) % processes).send('DELETE', path)).status, 204);
      assert.deepEqual(statuses(await sendToAll(fleet.running, 'GET', path)), [404, 404, 404]);
    }
  });

  it('is in the lists of every other at once, though they had kept the page', async () => {
    const list = `${base}/products?name=Listed&limit=100`;
    for (let round = 1; round <= rounds; round += 1) {
      const before = await sendToAll(fleet.running, 'GET', list);
      await create(at(round % processes), { name: 'Listed', price: round });
      const after = await sendToAll(fleet.running, 'GET', list, { headers: { Prefer: 'count=exact' } });
      for (const [index, answer] of after.entries()) {
        assert.equal(namesOf(answer).length, round);
        assert.equal(answer.headers['x-total-count'], String(round));
        assert.notEqual(answer.headers.etag, before[index]?.headers.etag);
        const unchanged = {
          headers: { 'If-None-Match': String(answer.headers.etag), Prefer: 'count=exact' },
        };
        assert.equal((await at(round % processes).send('GET', list, unchanged)).status, 304);
      }
    }
  });

  it('is in the results of a query that another process stored, and its pages go on anywhere', async () => {
    for (let price = 1; price <= 5; price += 1) await create(one(), { name: 'Queried', price });
    const asked = { filter: { name: 'Queried' }, sort: ['price'], limit: 2 };
    const first = await one().send('QUERY', `${base}/products`, { json: asked });
    await create(other(), { name: 'Queried', price: 0 });
    const stored = await at(2).send('GET', String(first.headers.location));
    const prices = (answer: Answer) => (answer.json().items as { price: number }[]).map(({ price }) => price);
    assert.deepEqual(prices(stored), [0, 1]);
    const cursor = stored.json().nextCursor;
    const next = await other().send('QUERY', `${base}/products`, { json: { ...asked, cursor } });
    assert.deepEqual(prices(next), [2, 3]);
  });
}

function eventTests(): void {
  it('is streamed by every other, in one order', async () => {
    const readers = await Promise.all(fleet.running.map(({ port }) => readEvents(port)));
    // The comment is written after the place in the log was taken.
    await Promise.all(readers.map((reader) => reader.until(({ comments }) => comments.length > 0)));
    await Promise.all(
      Array.from({ length: 30 }, (_, index) => create(at(index % processes), { name: 'Streamed' })),
    );
    await Promise.all(readers.map((reader) => reader.until(({ events }) => events.length >= 30)));
    const [first, ...others] = readers.map(({ events }) => events.map(({ id }) => id));
    assert.equal(new Set(first).size, 30);
    for (const ids of others) assert.deepEqual(ids, first);
    // Resumed in the middle on another process: what came after, and nothing twice.
    const resumed = await readEvents(other().port, { lastEventId: String(first?.[9]) });
    await resumed.until(({ events }) => events.length >= 20);
    assert.deepEqual(
      resumed.events.map(({ id }) => id),
      first?.slice(10),
    );
    for (const reader of [...readers, resumed]) reader.close();
  });

  it('carries out on one process what was accepted on another, where its outcome is read', async () => {
    const headers = { Prefer: 'respond-async' };
    const accepted = await one().send('POST', `${base}/products`, {
      json: product({ name: 'Later' }),
      headers,
    });
    assert.equal(accepted.status, 202);
    const operation = String(accepted.headers.location);
    let answer = await other().send('GET', operation);
    while (answer.status === 200 && answer.json().status === 'pending')
      answer = await other().send('GET', operation);
    assert.equal(answer.status, 303);
    const result = await at(2).send('GET', String(answer.headers.location));
    assert.equal(result.json().name, 'Later');
  });
}

function raceTests(): void {
  it('makes one resource for one idempotency key, and tells all of it', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const asked = {
        json: product({ name: `Keyed ${round}` }),
        headers: { 'Idempotency-Key': `"many-${round}"` },
      };
      const answers = await sendToAll(
        [...fleet.running, ...fleet.running],
        'POST',
        `${base}/products`,
        asked,
      );
      for (const { status, body } of answers) assert.ok(status === 201 || status === 409, body);
      const replayed = await sendToAll(fleet.running, 'POST', `${base}/products`, asked);
      assert.deepEqual(statuses(replayed), [201, 201, 201]);
      const made = [...answers, ...replayed].filter(({ status }) => status === 201);
      assert.equal(new Set(made.map(({ headers }) => headers.location)).size, 1);
      assert.equal(new Set(made.map(({ headers }) => headers.etag)).size, 1);
      assert.equal(namesOf(await one().send('GET', `${base}/products?name=Keyed%20${round}`)).length, 1);
    }
  });

  it('has one winner of each If-Match race, and the others are told 412', async () => {
    const path = String((await create(one())).headers.location);
    for (let round = 0; round < rounds; round += 1) {
      const { headers } = await one().send('GET', path);
      const asked = { headers: { 'If-Match': String(headers.etag) } };
      const racers = Array.from({ length: 9 }, (_, index) =>
        at(index % processes).send('PATCH', path, { ...asked, json: { stock: round * 10 + index } }),
      );
      const answers = await Promise.all(racers);
      assert.deepEqual(statuses(answers), [200, ...new Array(8).fill(412)]);
      const winner = answers.find(({ status }) => status === 200);
      assert.equal((await other().send('GET', path)).body, winner?.body);
    }
  });

  it('loses no change that was made without a condition', async () => {
    const path = String((await create(one(), { tags: [] })).headers.location);
    const headers = { 'Content-Type': 'application/json-patch+json' };
    const tags = Array.from({ length: 60 }, (_, index) => `tag ${index}`);
    const answers = await Promise.all(
      tags.map((value, index) => {
        const body = JSON.stringify([{ op: 'add', path: '/tags/-', value }]);
        return at(index % processes).send('PATCH', path, { body, headers });
      }),
    );
    assert.deepEqual(new Set(statuses(answers)), new Set([200]));
    assert.equal(new Set(answers.map((answer) => answer.headers.etag)).size, 60);
    const stands = (await other().send('GET', path)).json().tags as string[];
    assert.deepEqual([...stands].sort(), [...tags].sort());
  });
}

function constraintTests(): void {
  it('gives a unique value to one of them', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const asked = { json: product({ sku: `UNIQUE-${round}` }) };
      const answers = await sendToAll(
        [...fleet.running, ...fleet.running],
        'POST',
        `${base}/products`,
        asked,
      );
      assert.deepEqual(statuses(answers), [201, 409, 409, 409, 409, 409]);
    }
  });

  it('never leaves a product in a category that was deleted', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const category = await one().send('POST', `${base}/categories`, { json: { name: `Gone ${round}` } });
      const json = product({ name: 'Dependant', categoryId: idOf(category) });
      const [deleted, ...made] = await Promise.all([
        one().send('DELETE', String(category.headers.location)),
        other().send('POST', `${base}/products`, { json }),
        at(2).send('POST', `${base}/products`, { json }),
      ]);
      const count = made.filter(({ status }) => status === 201).length;
      if (deleted?.status === 204) assert.deepEqual(statuses(made), [422, 422]);
      else assert.ok(deleted?.status === 409 && count > 0, `${deleted?.status} with ${count} made`);
    }
  });
}

function connectionTests(): void {
  it('hears of what happens on every other, once each', async () => {
    const socket = await openRealtime(one().port);
    socket.say({ subscribe: ['categories.*'] });
    await socket.saw(({ subscribed }) => subscribed !== undefined);
    const names = Array.from({ length: rounds }, (_, round) => `Heard ${round}`);
    for (const [round, name] of names.entries()) {
      idOf(await at(round % processes).send('POST', `${base}/categories`, { json: { name } }));
    }
    await socket.saw(({ event }) => event?.data.object.name === names.at(-1));
    assert.deepEqual(
      socket.frames.flatMap(({ event }) => (event === undefined ? [] : [event.data.object.name])),
      names,
    );
    socket.end();
  });

  it('is opened once by a ticket of another', async () => {
    const { ticket } = (await one().send('POST', `${base}/realtime/tickets`)).json();
    const query = `?ticket=${ticket}`;
    const tries = await Promise.allSettled(fleet.running.map(({ port }) => openRealtime(port, { query })));
    const opened = tries.flatMap((tried) => (tried.status === 'fulfilled' ? [tried.value] : []));
    assert.equal(opened.length, 1);
    for (const socket of opened) socket.end();
  });

  it('ends when its credential is revoked on another: WebSocket and tunnel', async (context) => {
    const json = { name: 'Short', kind: 'secret', scopes: ['read', 'tunnel'] };
    const made = (await one().send('POST', `${base}/keys`, { json })).json();
    const socket = await openRealtime(one().port, { headers: { 'x-api-key': String(made.key) } });
    const destination = await listen(createServer(), context);
    const target = `127.0.0.1:${destination.port}`;
    const tunnel = connect(one().port, '127.0.0.1');
    const authorization = `Proxy-Authorization: Bearer ${made.key}`;
    tunnel.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n\r\n`);
    assert.match(String((await once(tunnel, 'data'))[0]), /^HTTP\/1\.1 200 /);
    const broken = new Promise((resolve) => tunnel.once('error', resolve));
    assert.equal((await other().send('DELETE', `${base}/keys/${made.id}`)).status, 204);
    assert.deepEqual(await socket.closed, { code: 1008, reason: 'credential ended' });
    assert.match(String(await broken), /ECONNRESET/);
  });
}

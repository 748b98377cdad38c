/** Deliveries in order by key (§6.19), on both stores: one of a key at a time, others pass, whatever fails, however many one unit has. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Delivery } from '../../../src/model/delivery.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { listen } from '../../harness/listening.ts';
import { startServer } from '../../harness/running-server.ts';
import { eventually } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/orders.config.ts', import.meta.url));
const base = '/api/v1';

type Order = {
  readonly id: string;
  readonly number: number;
  readonly state: string;
  readonly customer?: { id: string };
};

/** Notes what it accepts by key, and whether two of a key were under way at once. */
async function startOrderly(keyOf: (order: Order) => string) {
  const accepted = new Map<string, number[]>();
  const underWay = new Set<string>();
  const faults = { overlaps: 0 };
  /** The status for a delivery. */
  const answers: { status: (order: Order) => number } = { status: () => 204 };
  const server = createServer(async (request, response) => {
    const { data } = (await json(request)) as { data: Order };
    const key = keyOf(data);
    if (underWay.has(key)) faults.overlaps += 1;
    underWay.add(key);
    await pause(2);
    underWay.delete(key);
    const status = answers.status(data);
    if (status < 300) accepted.set(key, [...(accepted.get(key) ?? []), data.number]);
    response.writeHead(status).end();
  });
  const { url } = await listen(server, { after });
  return { url, accepted, faults, answers };
}

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1);

describeOnEachStore('deliveries in order', async (engine) => {
  const program = await startServer({ config, engine, env: { COMITY_EGRESS_ALLOW: '127.0.0.0/8' } });
  after(() => program.stop());
  const make = async (members: object) => {
    const made = await program.send('POST', `${base}/endpoints`, { json: members });
    assert.equal(made.status, 201, made.body);
    return made.json() as unknown as { readonly id: string };
  };
  const remove = (id: string) => program.send('DELETE', `${base}/endpoints/${id}`);
  const deliveries = (query: string) =>
    program.list(`${base}/deliveries?${query}&limit=1000&sort=createdAt`) as Promise<readonly Delivery[]>;
  const create = async (order: object) => {
    const made = await program.send('POST', `${base}/orders`, {
      json: { number: 0, state: 'open', ...order },
    });
    assert.equal(made.status, 201, made.body);
    return made.json() as unknown as Order;
  };
  const change = async ({ id }: Order, number: number) => {
    const changed = await program.send('PATCH', `${base}/orders/${id}`, { json: { number } });
    assert.equal(changed.status, 200, changed.body);
  };

  test('a key waits for the retry of its delivery and goes on after a dead letter, and others pass', async () => {
    const receiver = await startOrderly(({ id }) => id);
    const [slow, dead, good] = [await create({}), await create({}), await create({})];
    let refusals = 0;
    receiver.answers.status = ({ id, number }) => {
      if (id === slow.id && number === 3 && refusals < 2) {
        refusals += 1;
        return 500;
      }
      return id === dead.id && number === 2 ? 400 : 204;
    };
    const { id } = await make({ url: receiver.url, events: ['orders.updated'], orderBy: '/id' });
    for (const number of upTo(8)) for (const order of [slow, dead, good]) await change(order, number);
    const all = () => [slow, dead, good].map((order) => receiver.accepted.get(order.id) ?? []);
    await eventually(async () => all()[2]?.length === 8 || undefined, 'the others did not pass');
    assert.ok((all()[0]?.length ?? 0) < 8, 'the key did not wait');
    await eventually(
      async () =>
        all()
          .map(({ length }) => length)
          .join() === '8,7,8' || undefined,
      'a key stopped',
    );
    assert.deepEqual(all(), [upTo(8), upTo(8).filter((number) => number !== 2), upTo(8)]);
    assert.equal(receiver.faults.overlaps, 0);
    await eventually(
      async () => (await deliveries(`endpointId=${id}&status=delivered`)).length === 23 || undefined,
      'not all are delivered',
    );
    // A dead letter that is sent again has no place any more: it goes out at once.
    receiver.answers.status = () => 204;
    const [letter] = await deliveries(`endpointId=${id}&status=not_delivered`);
    assert.equal(letter?.nextAttemptAt, null);
    assert.equal((await program.send('POST', `${base}/deliveries/${letter?.id}/resend`)).status, 202);
    await eventually(
      async () => receiver.accepted.get(dead.id)?.at(-1) === 2 || undefined,
      'the resend is missing',
    );
    await remove(id);
  });

  /** Three changes of one order wait for a receiver that is down. */
  const fallBehind = async () => {
    const receiver = await startOrderly(({ id }) => id);
    const order = await create({});
    receiver.answers.status = () => 500;
    const { id } = await make({ url: receiver.url, events: ['orders.updated'], orderBy: '/id' });
    for (const number of upTo(3)) await change(order, number);
    return { receiver, order, id };
  };

  test('a resend of a delivery that waits behind another does not overtake it', async () => {
    const { receiver, order, id } = await fallBehind();
    const last = await eventually(async () => {
      const [, , third] = await deliveries(`endpointId=${id}`);
      return third?.lastError === 'held-back' ? third : undefined;
    }, 'the third is not held back');
    receiver.answers.status = () => 204;
    assert.equal((await program.send('POST', `${base}/deliveries/${last.id}/resend`)).status, 202);
    await eventually(async () => receiver.accepted.get(order.id)?.length === 3 || undefined, 'a key stopped');
    assert.deepEqual(receiver.accepted.get(order.id), upTo(3));
    await remove(id);
  });

  test('a unit with more deliveries than one holds keeps their order, also to what follows it', async () => {
    const receiver = await startOrderly(({ customer }) => String(customer?.id));
    const { id } = await make({ url: receiver.url, events: ['orders.created'], orderBy: '/customer/id' });
    const count = 300;
    const items = upTo(count).map((number) => ({
      number,
      state: 'open',
      customer: { id: `c${number % 3}` },
    }));
    const bulk = await program.send('POST', `${base}/orders/bulk`, { json: { items, atomic: true } });
    assert.equal(bulk.status, 200, bulk.body.slice(0, 300));
    for (const key of [0, 1, 2]) await create({ number: count + 1, customer: { id: `c${key}` } });
    const all = () => [0, 1, 2].map((key) => receiver.accepted.get(`c${key}`) ?? []);
    await eventually(
      async () => all().every(({ length }) => length === count / 3 + 1) || undefined,
      'a key stopped',
    );
    for (const [key, numbers] of all().entries())
      assert.deepEqual(numbers, [...upTo(count).filter((number) => number % 3 === key), count + 1]);
    assert.equal(receiver.faults.overlaps, 0);
    await remove(id);
  });

  test('what was in a line stays in it when orderBy changes or goes, and events without a key need none', async () => {
    const { receiver, order, id } = await fallBehind();
    const patched = await program.send('PATCH', `${base}/endpoints/${id}`, { json: { orderBy: '/note' } });
    assert.equal(patched.status, 200, patched.body);
    await change(order, 4);
    const found = await deliveries(`endpointId=${id}`);
    assert.deepEqual(
      found.map(({ orderKey }) => orderKey !== undefined),
      [true, true, true, false],
    );
    receiver.answers.status = () => 204;
    await eventually(
      async () => receiver.accepted.get(order.id)?.length === 4 || undefined,
      'a delivery is missing',
    );
    const inLine = receiver.accepted.get(order.id)?.filter((number) => number < 4);
    assert.deepEqual(inLine, upTo(3));
    await remove(id);
  });

  for (const [title, orderBy, status] of [
    ['a pointer that is none', 'id', 422],
    ['a member that the collection lacks', '/price', 422],
    ['the whole resource', '/', 422],
    ['a pointer beyond its bound', `/${'a'.repeat(200)}`, 422],
  ] as const) {
    test(`refuses an order by ${title}`, async () => {
      const json = { url: 'http://127.0.0.1:4999/', events: ['orders.*'], orderBy };
      const answer = await program.send('POST', `${base}/endpoints`, { json });
      assert.equal(answer.status, status, answer.body);
      assert.equal((answer.json().errors as { pointer: string }[])[0]?.pointer, '/orderBy');
    });
  }
});

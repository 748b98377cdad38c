/** The log of deliveries: who sees it, what was tried, and sending again by hand. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Delivery } from '../../../src/model/delivery.ts';
import { attemptChange } from '../../../src/webhooks/sending/settle-delivery.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { putDelivery, putEndpoint, type WalkedEvents, walkEvents } from '../events/walked-events.ts';

const dayS = 86_400;
const timing = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: 1, totalMs: 2 };

describe('/deliveries', async () => {
  const room = walkEvents(await openEmbedded());
  await putEndpoint(room, 'ep_one');
  const eventId = await posted(room);

  test('is listed, queried and read by the owner of the endpoint and by administrators alone', async () => {
    const { id } = await putDelivery(room, 'usr_ada', { eventId });
    const read = (who: string | undefined) => room.ask(who, 'GET', `deliveries/${id}`);
    assert.equal((await read('ada')).json.id, id);
    assert.equal((await read('root')).json.eventId, eventId);
    assert.deepEqual([(await read('bob')).status, (await read('writer')).status], [404, 403]);
    assert.equal((await read(undefined)).status, 401);
    const listed = async (who: string) =>
      (await room.ask(who, 'GET', `deliveries?eventId=${eventId}`)).json.items.map(
        (item: Delivery) => item.id,
      );
    assert((await listed('ada')).includes(id));
    assert.deepEqual(await listed('bob'), []);
    const queried = await room.ask('ada', 'QUERY', 'deliveries', {
      json: { filter: { status: 'pending', eventId } },
    });
    assert(queried.json.items.some((item: Delivery) => item.id === id));
  });

  test('takes no writes', async () => {
    const { id } = await putDelivery(room, 'usr_ada', { eventId });
    for (const [method, path] of [
      ['POST', 'deliveries'],
      ['PUT', `deliveries/${id}`],
      ['PATCH', `deliveries/${id}`],
      ['DELETE', `deliveries/${id}`],
    ] as const) {
      assert.equal((await room.ask('root', method, path, { json: {} })).status, 405, `${method} ${path}`);
    }
    assert.equal(
      (await room.ask('root', 'POST', 'deliveries/bulk-delete', { json: { ids: [id] } })).status,
      405,
    );
  });

  test('shows the attempts, oldest first, in pages, with the entity tag of the delivery', async () => {
    const { id } = await putDelivery(room, 'usr_ada', { eventId, attemptCount: 12 });
    await logAttempts(room, id, 12);
    const path = `deliveries/${id}/attempts`;
    const whole = await room.ask('ada', 'GET', path);
    const numbers = ({ json }: typeof whole) => json.items.map(({ number }: { number: number }) => number);
    assert.deepEqual(numbers(whole), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert.equal(whole.json.nextCursor, null);
    const [first] = whole.json.items;
    assert.deepEqual(
      [first.statusCode, first.error, first.responseSnippet, first.trigger],
      [500, null, 'answer 1', 'automatic'],
    );
    const page = await room.ask('ada', 'GET', `${path}?limit=5`);
    assert.deepEqual(numbers(page), [1, 2, 3, 4, 5]);
    const next = await room.ask('ada', 'GET', `${path}?limit=7&cursor=${page.json.nextCursor}`);
    assert.deepEqual(numbers(next), [6, 7, 8, 9, 10, 11, 12]);
    assert.equal(next.json.nextCursor, null);
    const tag = String(whole.field('ETag'));
    assert.equal(tag, (await room.ask('ada', 'GET', `deliveries/${id}`)).field('ETag'));
    assert.equal((await room.ask('ada', 'GET', path, { headers: { 'If-None-Match': tag } })).status, 304);
  });

  test('shows the attempts of one delivery to nobody who may not see it, and none where none was made', async () => {
    const { id } = await putDelivery(room, 'usr_ada', { eventId });
    const path = `deliveries/${id}/attempts`;
    assert.deepEqual((await room.ask('ada', 'GET', path)).json, { items: [], nextCursor: null });
    assert.equal((await room.ask('bob', 'GET', path)).status, 404);
    assert.equal((await room.ask('writer', 'GET', path)).status, 403);
    assert.equal((await room.ask('ada', 'GET', 'deliveries/none/attempts')).status, 404);
  });

  test('refuses parameters of the attempts that are none', async () => {
    const { id } = await putDelivery(room, 'usr_ada', { eventId });
    for (const query of [
      'limit=0',
      'limit=1001',
      'limit=x',
      'cursor=',
      'cursor=abc',
      'sort=at',
      'limit=%FF',
    ]) {
      const { status, json } = await room.ask('ada', 'GET', `deliveries/${id}/attempts?${query}`);
      assert.deepEqual([status, json.code], [400, 'query_parameter_invalid'], query);
    }
  });

  test('sends a delivery again that failed: pending and due now, its schedule untouched', async () => {
    const nextAttemptAt = new Date(room.clock() + 3_600_000).toISOString();
    const failed = {
      status: 'not_delivered',
      attemptCount: 2,
      scheduledAttemptCount: 2,
      nextAttemptAt,
    } as const;
    const { id } = await putDelivery(room, 'usr_ada', { eventId, ...failed, dueAt: nextAttemptAt });
    const woken = room.woken.length;
    const before = room.clock();
    const resent = await room.ask('ada', 'POST', `deliveries/${id}/resend`);
    assert.equal(resent.status, 202);
    assert.equal(resent.field('Location'), `/api/v1/deliveries/${id}`);
    const { json } = await room.ask('ada', 'GET', `deliveries/${id}`);
    assert.deepEqual(resent.json, json);
    assert.deepEqual(
      [json.status, json.nextAttemptAt, json.attemptCount, json.scheduledAttemptCount],
      ['pending', nextAttemptAt, 2, 2],
    );
    assert(Date.parse(json.dueAt) >= before - 1 && Date.parse(json.dueAt) <= room.clock());
    assert.deepEqual(room.woken.slice(woken), ['ep_one']);
  });

  test('sends again from every state, also what was delivered and what has no attempt left', async () => {
    for (const status of ['pending', 'delivered', 'not_delivered'] as const) {
      const { id } = await putDelivery(room, 'usr_ada', {
        eventId,
        status,
        dueAt: null,
        nextAttemptAt: null,
      });
      const { status: answered, json } = await room.ask('root', 'POST', `deliveries/${id}/resend`, {
        json: {},
      });
      assert.deepEqual([answered, json.status, json.nextAttemptAt], [202, 'pending', null], status);
      assert.notEqual(json.dueAt, null);
    }
  });

  test('tells a resend from an attempt by schedule that is due in the same millisecond', async (context) => {
    const now = Date.now();
    context.mock.method(Date, 'now', () => now);
    const time = new Date(room.clock()).toISOString();
    const { id } = await putDelivery(room, 'usr_ada', { eventId, createdAt: time });
    const { json } = await room.ask('ada', 'POST', `deliveries/${id}/resend`);
    assert.equal(json.nextAttemptAt, time);
    assert.notEqual(json.dueAt, time);
  });

  test('loses no resend when many are asked for at once', async () => {
    const { id } = await putDelivery(room, 'usr_ada', { eventId });
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => room.ask('ada', 'POST', `deliveries/${id}/resend`)),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([202]));
  });

  test('refuses a resend of another’s delivery and of none', async () => {
    const { id } = await putDelivery(room, 'usr_ada', { eventId });
    assert.equal((await room.ask('bob', 'POST', `deliveries/${id}/resend`)).status, 404);
    assert.equal((await room.ask('writer', 'POST', `deliveries/${id}/resend`)).status, 403);
    assert.equal((await room.ask(undefined, 'POST', `deliveries/${id}/resend`)).status, 401);
    assert.equal((await room.ask('ada', 'POST', 'deliveries/none/resend')).status, 404);
    const odd = await room.ask('ada', 'POST', `deliveries/${id}/resend`, { json: { via: 'pigeon' } });
    assert.equal(odd.status, 422);
  });

  test('ends the window by hand after 15 days, and by the command line after 30', async () => {
    const aged = async (seconds: number) => {
      const createdAt = new Date(room.clock() - seconds * 1000).toISOString();
      return (await putDelivery(room, 'usr_ada', { eventId, createdAt })).id;
    };
    const resend = async (id: string, json?: object) => {
      const answered = await room.ask(
        'ada',
        'POST',
        `deliveries/${id}/resend`,
        json === undefined ? {} : { json },
      );
      return answered.status === 202 ? 202 : `${answered.status} ${answered.json.code}`;
    };
    const commandLine = { via: 'command-line' };
    assert.equal(await resend(await aged(15 * dayS - 5)), 202);
    assert.equal(await resend(await aged(15 * dayS + 1)), '409 resend_window_over');
    assert.equal(await resend(await aged(30 * dayS - 5), commandLine), 202);
    assert.equal(await resend(await aged(30 * dayS + 1), commandLine), '409 resend_window_over');
  });

  test('says 409 where the endpoint was deleted or is disabled, or the event is not kept any more', async () => {
    await putEndpoint(room, 'ep_off', 'disabled');
    const codes: string[] = [];
    for (const given of [
      { eventId, endpointId: 'ep_off' },
      { eventId, endpointId: 'ep_gone' },
      { eventId: 'evt_gone' },
    ]) {
      const { id } = await putDelivery(room, 'usr_ada', given);
      const { status, json } = await room.ask('ada', 'POST', `deliveries/${id}/resend`);
      codes.push(`${status} ${json.code}: ${json.error}`);
    }
    assert.deepEqual(codes, [
      '409 endpoint_unavailable: the endpoint is disabled',
      '409 endpoint_unavailable: the endpoint is gone',
      '409 event_unavailable: the event is no longer kept',
    ]);
  });
});

async function posted(room: WalkedEvents): Promise<string> {
  const { json } = await room.ask('ada', 'POST', 'events', {
    json: { type: 'invoice.paid', data: { object: {} } },
  });
  return json.id;
}

/** Logs attempts from 1 on, as the settlement does. */
async function logAttempts(room: WalkedEvents, id: string, count: number): Promise<void> {
  const at = room.clock();
  const changes = Array.from({ length: count }, (_, index) => {
    const outcome = {
      kind: 'answered',
      status: 500,
      fields: [],
      snippet: `answer ${index + 1}`,
      cut: null,
      protocol: 'http/1.1',
      reused: true,
      address: null,
      timing,
    } as const;
    const attempted = { outcome, startedAt: at, endedAt: at };
    return attemptChange(id, 'usr_ada', {
      number: index + 1,
      trigger: 'automatic',
      attempted,
      snippetCharacters: 100,
    });
  });
  assert.equal((await room.store.commit({ changes, events: [] })).outcome, 'committed');
}

/** What a sender is answered (§4.14), whatever else stands in its request: on the embedded store, without sockets. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { openEmbedded } from '../../harness/stores.ts';
import type { Answered } from '../../harness/walked-resources.ts';
import {
  declared,
  plainFields,
  receivedBytesMax,
  secret,
  shopSenders,
  standardFields,
  timestampedField,
  walkSenders,
} from './walked-senders.ts';

const store = await openEmbedded();

describe('POST /webhooks/{sender}', () => {
  const room = walkSenders(store, {
    senders: [...shopSenders, declared('raw', 'plain'), declared('chat', 'slack')],
  });
  let number = 0;
  /** A message of the plain sender `raw`, each with an id of its own. */
  const post = async (body: string | Uint8Array, fields: readonly string[] = [], posting = {}) => {
    number += 1;
    const delivery = `d-${number}`;
    const signed = plainFields(body, delivery);
    const answered = await room.post('raw', { body, fields: [...signed, ...fields], ...posting });
    return { answered, delivery };
  };
  const refusal = ({ status, json: { code, reason } }: Answered) => {
    return [status, code, reason];
  };

  test('accepts a message with 204 and nothing else, and keeps it with its body as it came', async () => {
    const body = '{"id":"evt_1","type":"checkout.completed","n":1.0}';
    const fields = ['Content-Type', 'application/json', 'User-Agent', 'billing/1'];
    const signed = timestampedField(body, room.clock());
    const answered = await room.post('billing', { body, fields: [...fields, ...signed] });
    assert.deepEqual([answered.status, answered.fields, String(answered.content)], [204, [], '']);
    const [received, ...others] = await room.received('billing');
    assert.equal(others.length, 0);
    assert.match(received?.id ?? '', /^rec_/);
    assert.deepEqual(
      { ...received, id: '', receivedAt: '', createdAt: '', updatedAt: '', dueAt: '' },
      {
        ...{ id: '', sender: 'billing', dedupeKey: 'evt_1', type: 'checkout.completed', receivedAt: '' },
        ...{ status: 'pending', attempts: 0, scheduledAttempts: 0, dueAt: '', lastError: null },
        ...{ contentType: 'application/json', contentLength: body.length, createdAt: '', updatedAt: '' },
      },
    );
    assert.deepEqual([received?.dueAt, received?.createdAt], [received?.receivedAt, received?.receivedAt]);
    const content = await room.content('billing', 'evt_1');
    assert.equal(Buffer.from(content.body ?? '', 'base64').toString(), body);
    assert.deepEqual(
      [content.id, content.contentType, content.contentEncoding, content.headers['user-agent']],
      [received?.id, 'application/json', null, 'billing/1'],
    );
  });

  test('answers a repetition as the first, and keeps one', async () => {
    const body = '{"type":"stock.counted"}';
    for (const at of [room.clock(), room.clock() + 2000]) {
      const answered = await room.post('partner', { body, fields: standardFields(body, 'msg_1', at) });
      assert.equal(answered.status, 204);
    }
    assert.deepEqual(
      (await room.received('partner')).map(({ dedupeKey }) => dedupeKey),
      ['msg_1'],
    );
  });

  test('takes the same id of another sender for another message', async () => {
    const body = '{"type":"stock.counted"}';
    assert.equal((await room.post('forge', { body, fields: plainFields(body, 'msg_1') })).status, 204);
    assert.equal((await room.received('forge')).length, 1);
  });

  for (const [title, body, contentLength] of [
    ['no JSON', 'hello', 5],
    ['broken JSON', '{"id":', 6],
    ['no UTF-8', Buffer.from([0xff, 0xfe, 0, 0x80]), 4],
    ['empty', '', 0],
    ['of 1 MiB', Buffer.alloc(1024 * 1024, 'é'), 1024 * 1024],
    ['JSON of a thousand levels', `${'['.repeat(1000)}1${']'.repeat(1000)}`, 2001],
    ['with members of every prototype', '{"__proto__":{"type":"a"},"constructor":1}', 42],
  ] as const) {
    test(`accepts a body that is ${title}, which has no type`, async () => {
      const { answered, delivery } = await post(body);
      assert.equal(answered.status, 204);
      const content = await room.content('raw', delivery);
      assert.deepEqual(Buffer.from(content.body ?? '', 'base64'), Buffer.from(body as string));
      const received = (await room.received('raw')).find(({ dedupeKey }) => dedupeKey === delivery);
      assert.deepEqual(
        [received?.type, received?.contentType, received?.contentLength],
        [null, null, contentLength],
      );
    });
  }

  test('accepts what is announced as chunked, and a request that announces no content', async () => {
    assert.equal((await post('{}', [], { chunked: true })).answered.status, 204);
    const fields = plainFields('', 'none');
    assert.equal((await room.post('raw', { fields })).status, 204);
    assert.equal((await room.content('raw', 'none')).body, '');
  });

  test('accepts every Content-Type, also one that is none, and leaves the content coding on', async () => {
    for (const type of ['text/plain; charset=utf-16', 'application/x-www-form-urlencoded', 'nonsense', '']) {
      const { answered, delivery } = await post('a=b', ['Content-Type', type]);
      assert.equal(answered.status, 204, type);
      assert.equal((await room.content('raw', delivery)).contentType, type === '' ? null : type);
    }
    const zipped = gzipSync('{"type":"a"}');
    const { answered, delivery } = await post(zipped, ['Content-Encoding', 'gzip']);
    assert.equal(answered.status, 204);
    const content = await room.content('raw', delivery);
    assert.deepEqual([content.contentEncoding, content.body], ['gzip', zipped.toString('base64')]);
    assert.equal((await post('x', ['Content-Encoding', 'x-made-up; q'])).answered.status, 204);
  });

  test('heeds no field that is for browsers, caches, people or other credentials', async () => {
    for (const fields of [
      ['Authorization', 'Bearer garbage'],
      ['Authorization', 'Basic %%%', 'Authorization', 'Bearer twice'],
      ['X-API-Key', ''],
      ['Cookie', 'session=1; session=2'],
      ['Origin', 'https://elsewhere.example'],
      ['Origin', 'not an origin'],
      ['Origin', 'https://page.example', 'Sec-Fetch-Site', 'cross-site'],
      ['Accept', 'text/html'],
      ['Accept', ';;;'],
      ['If-None-Match', '*'],
      ['If-None-Match', 'not a tag'],
      ['If-Match', '"1"'],
      ['If-Unmodified-Since', 'Thu, 01 Jan 1970 00:00:00 GMT'],
      ['Idempotency-Key', '"one"'],
      ['Idempotency-Key', 'x'.repeat(300)],
      ['Prefer', 'respond-async, return=representation'],
      ['Expect', '100-continue'],
    ]) {
      const { answered } = await post('{"n":1}', fields);
      assert.deepEqual([answered.status, answered.fields], [204, []], fields.join(' '));
    }
  });

  test('still refuses what leaves open which content was meant', async () => {
    const { answered } = await post('{}', ['Content-Type', 'a/b', 'Content-Type', 'c/d']);
    assert.deepEqual(refusal(answered).slice(0, 2), [400, 'field_invalid']);
    const other = await post('{}', ['Origin', 'a', 'Origin', 'b', 'Content-Length', '2']);
    assert.equal(other.answered.status, 400);
  });

  test('takes as many octets as the setting says, and answers one more with 413', async () => {
    for (const chunked of [false, true]) {
      assert.equal((await post(Buffer.alloc(receivedBytesMax), [], { chunked })).answered.status, 204);
      const { answered } = await post(Buffer.alloc(receivedBytesMax + 1), [], { chunked });
      assert.deepEqual(refusal(answered).slice(0, 2), [413, 'content_too_large']);
    }
  });

  test('takes no message that has no room in the memory budget, and says what raises the limit', async () => {
    const small = walkSenders(store, { memoryBytes: 1024 * 1024 });
    for (const chunked of [false, true]) {
      const body = Buffer.alloc(64 * 1024 + 1);
      const answered = await small.post('forge', { body, fields: plainFields(body, 'd-long'), chunked });
      assert.deepEqual(refusal(answered).slice(0, 2), [413, 'content_too_large']);
      assert.match(String(answered.json.error), /at most 65536 octets .*COMITY_MEMORY_BYTES_MAX/);
    }
  });

  test('refuses what no secret signed with 400 and says why, and keeps nothing of it', async () => {
    const body = '{"id":"evt_x"}';
    const now = room.clock();
    const before = (await room.received('billing')).length;
    const cases: readonly (readonly [fields: readonly string[], code: string, reason: string])[] = [
      [[], 'signature_invalid', 'missing'],
      [['Service-Signature', 'v1=00'], 'signature_invalid', 'malformed'],
      [[...timestampedField(body, now), ...timestampedField(body, now)], 'signature_invalid', 'malformed'],
      [timestampedField(`${body} `, now), 'signature_invalid', 'no-match'],
      [timestampedField(body, now, 'whsec_b3RoZXI='), 'signature_invalid', 'no-match'],
      [timestampedField(body, now - 310_000), 'signature_stale', 'stale'],
      [timestampedField(body, now + 310_000), 'signature_stale', 'ahead'],
    ];
    for (const [fields, code, reason] of cases) {
      const answered = await room.post('billing', { body, fields });
      assert.deepEqual(refusal(answered), [400, code, reason]);
      assert(!answered.fields.includes('Access-Control-Allow-Origin'));
    }
    assert.equal((await room.received('billing')).length, before);
    assert.deepEqual(
      room.observed.slice(-cases.length),
      cases.map(([, , reason]) => ({
        ...{ kind: 'webhook-received', sender: 'billing', outcome: 'refused', reason },
      })),
    );
  });

  test('says nothing to anybody of a signature or a secret', async () => {
    const fields = timestampedField('{}', room.clock(), 'another secret');
    const answered = await room.post('billing', { body: '{"id":1}', fields });
    const told = JSON.stringify([room.observed, answered]);
    assert(!told.includes(secret) && !told.includes(fields[1]?.split('v1=')[1] ?? ''));
  });

  test('answers other methods with 405 and what there is, and names that are no sender with 404', async () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'QUERY']) {
      const answered = await room.post('raw', { method });
      assert.deepEqual([answered.status, answered.field('Allow')], [405, 'POST, OPTIONS'], method);
    }
    for (const name of ['nobody', 'raw/more', '', 'constructor']) {
      assert.equal((await room.post(name, { body: '{}' })).status, 404, name);
    }
  });

  test('tells by OPTIONS what it takes, and allows pages of no origin anything', async () => {
    const origin = ['Origin', 'https://page.example', 'Access-Control-Request-Method', 'POST'];
    for (const fields of [[], origin]) {
      const answered = await room.post('raw', { method: 'OPTIONS', fields });
      assert.deepEqual(
        [answered.status, answered.fields],
        [
          204,
          [
            ...['Allow', 'POST, OPTIONS', 'Accept', '*/*', 'Accept-Post', '*/*'],
            ...['Max-Content-Length', String(receivedBytesMax)],
          ],
        ],
      );
    }
  });

  test('answers a challenge with what it asks for, whatever is preferred, and keeps it not', async () => {
    const body = '{"type":"url_verification","challenge":"3eZbrw1aB\\"10FEMAGAZd4FyFQ"}';
    const seconds = Math.floor(room.clock() / 1000);
    const signature = createHmac('sha256', secret).update(`v0:${seconds}:${body}`).digest('hex');
    const signed = ['X-Slack-Request-Timestamp', String(seconds), 'X-Slack-Signature', `v0=${signature}`];
    for (const fields of [signed, [...signed, 'Prefer', 'return=minimal', 'Accept', 'text/html']]) {
      const answered = await room.post('chat', { body, fields });
      assert.deepEqual(
        [answered.status, answered.field('Content-Type'), answered.json],
        [200, 'application/json', { challenge: '3eZbrw1aB"10FEMAGAZd4FyFQ' }],
      );
      assert.equal(answered.field('Preference-Applied'), undefined);
    }
    assert.deepEqual(await room.received('chat'), []);
    const forged = await room.post('chat', { body: body.replace('3eZ', '4eZ'), fields: signed });
    assert.deepEqual(refusal(forged), [400, 'signature_invalid', 'no-match']);
  });
});

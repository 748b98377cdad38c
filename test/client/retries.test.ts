/**
 * Answers that are lost after the program carried a request out, refusals that ask to come again, and times that are over: each write is
 * carried out once, however often it is sent.
 */
import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { serverOfFile } from '../harness/running-server.ts';
import { clientOf } from './client-of.ts';
import { type Fault, type Passed, startFaultyProxy } from './faulty-proxy.ts';

const program = await serverOfFile();
const proxy = await startFaultyProxy(() => program.port, { after });
const client = clientOf(proxy.baseUrl);

beforeEach(() => {
  proxy.fault = () => undefined;
});

/** The fault comes so often to requests that fit, the first of them first. */
function faults(fault: Fault, times: number, fits: (request: Passed) => boolean): void {
  let left = times;
  proxy.fault = (request) => {
    if (left === 0 || !fits(request)) return undefined;
    left -= 1;
    return fault;
  };
}

const with_ = (method: string) => (request: Passed) => request.method === method;
const sentKeys = (method: string) =>
  proxy.passed.filter((each) => each.method === method).map(({ headers }) => headers['idempotency-key']);

describe('an answer that is lost after the commit', () => {
  it('to a POST makes one document', async () => {
    faults('lost', 1, with_('POST'));
    const made = await client.categories.create({ name: 'once' });
    assert.deepEqual(
      (await client.categories.list({ filter: { name: 'once' } })).items.map(({ id }) => id),
      [made.id],
    );
    const [first, second] = sentKeys('POST');
    assert.match(String(first), /^"[0-9a-f]{32}"$/);
    assert.equal(second, first);
  });

  it('to a PATCH under If-Match is success', async () => {
    const made = await client.categories.create({ name: 'patched' });
    faults('lost', 2, with_('PATCH'));
    assert.equal((await client.categories.update(made, { name: 'changed' })).name, 'changed');
  });

  it('to a PUT and a DELETE under If-Match is success, also where a proxy drops the key', async () => {
    for (const drops of [false, true]) {
      const made = await client.categories.create({ name: 'put' });
      proxy.fault = ({ headers }) => {
        if (drops) delete headers['idempotency-key'];
        return undefined;
      };
      let left = 1;
      const drop = proxy.fault;
      proxy.fault = (request) => {
        drop(request);
        if (request.method !== 'PUT' && request.method !== 'DELETE') return undefined;
        left -= 1;
        return left >= 0 ? 'lost' : undefined;
      };
      assert.equal((await client.categories.replace(made, { name: 'replaced' })).name, 'replaced');
      left = 1;
      await client.categories.delete(await client.categories.get(made.id));
      await assert.rejects(client.categories.get(made.id), { code: 'not_found' });
    }
  });

  it('that stays lost is an error of the network after five requests', async () => {
    const sent = proxy.count('GET');
    faults('lost', 99, with_('GET'));
    await assert.rejects(client.categories.list(), { name: 'ComityError', code: 'network', status: 0 });
    assert.equal(proxy.count('GET'), sent + 5);
  });

  it('to a login is an error at once, because its content is a secret', async () => {
    faults('lost', 99, with_('POST'));
    const sent = proxy.count('POST');
    const login = client.auth.login({ email: 'ada@shop.example', password: 'correct horse' });
    await assert.rejects(login, { code: 'network' });
    assert.equal(proxy.count('POST'), sent + 1);
  });
});

describe('a refusal that asks to come again', () => {
  for (const status of [429, 502, 503, 504]) {
    it(`${status} is obeyed`, async () => {
      faults({ status, headers: { 'Retry-After': '0' } }, 2, with_('GET'));
      assert.ok((await client.categories.list()).items.length > 0);
    });
  }

  it('waits as long as Retry-After says', async () => {
    faults({ status: 503, headers: { 'Retry-After': '1' } }, 1, with_('GET'));
    const begun = performance.now();
    await client.categories.list();
    assert.ok(performance.now() - begun >= 1_000);
  });

  it('in a day is thrown, with the time', async () => {
    const body = JSON.stringify({ error: 'too many requests', code: 'rate_limited' });
    const headers = { 'Retry-After': '86400', 'Content-Type': 'application/json' };
    faults({ status: 429, headers, body }, 1, with_('POST'));
    await assert.rejects(client.categories.create({ name: 'x' }), {
      code: 'rate_limited',
      status: 429,
      retryAfter: 86_400,
    });
  });

  it('in 31 seconds is thrown, and in 30 waited for', async () => {
    for (const seconds of [30, 31]) {
      faults({ status: 503, headers: { 'Retry-After': String(seconds) } }, 1, with_('GET'));
      const code = seconds === 30 ? 'timeout' : 'answer_unknown';
      await assert.rejects(client.categories.list({}, { timeout: 200 }), { code });
    }
  });
});

describe('a call ends', () => {
  it('when its time is over, waits included', async () => {
    faults({ status: 503, headers: { 'Retry-After': '20' } }, 99, with_('GET'));
    const begun = performance.now();
    await assert.rejects(client.categories.list({}, { timeout: 100 }), { code: 'timeout', status: 0 });
    assert.ok(performance.now() - begun < 15_000);
  });

  it('with the reason of its signal, while it waits for an answer or to come again', async () => {
    for (const fault of [new Promise(() => undefined), { status: 503, headers: { 'Retry-After': '20' } }]) {
      faults(fault, 99, with_('GET'));
      const controller = new AbortController();
      const reason = new Error('the page was left');
      const call = client.categories.list({}, { signal: controller.signal });
      setTimeout(() => controller.abort(reason), 50);
      await assert.rejects(call, reason);
    }
  });
});

it('does not follow a write elsewhere', async () => {
  const headers = { Location: `${proxy.baseUrl}/notes` };
  faults({ status: 307, headers }, 99, with_('POST'));
  const sent = proxy.count('POST');
  await assert.rejects(client.categories.create({ name: 'led away' }), {
    code: 'answer_unknown',
    status: 307,
  });
  assert.equal(proxy.count('POST'), sent + 1);
  const { items } = await client.notes.list();
  assert.deepEqual(items, []);
});

it('says of an answer that is not of Comity that it is unknown', async () => {
  faults({ status: 403, body: '<h1>Forbidden</h1>' }, 1, with_('GET'));
  await assert.rejects(client.categories.list(), { code: 'answer_unknown', status: 403 });
});

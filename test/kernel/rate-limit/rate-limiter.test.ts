/**
 * The limiter: which callers and methods count against which limit, and how several processes count as one. A process is a
 * limiter here; what they share is a tally that the test holds in its hands.
 */
import assert from 'node:assert/strict';
import { mock, type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readRequestFields } from '../../../src/http/request-fields.ts';
import {
  createRateLimiter,
  type RateLimiter,
  type RateLimits,
  rateLimits,
} from '../../../src/kernel/rate-limit/rate-limiter.ts';
import { memoryBounds } from '../../../src/memory/bounds.ts';
import {
  type Authenticated,
  anonymous,
  authenticated,
  operatorId,
  type Principal,
} from '../../../src/model/principal.ts';
import { createTallies } from '../../../src/store/sqlite/home.ts';
import { type Store, StoreUnavailable } from '../../../src/store/store.ts';

const minute = 60_000;
const start = 29_000_000 * minute;
const syncMs = 250;
const alice = person('alice');
const operator = authenticated({ id: operatorId, scopes: ['read', 'write', 'admin'] });
const administrator = authenticated({ id: 'usr_1', scopes: ['read', 'write', 'admin'] });

function person(id: string): Authenticated {
  return authenticated({ id, scopes: ['read', 'write'] });
}

type Tallying = Parameters<typeof createRateLimiter>[1];

const alone: Tallying = {
  shared: false,
  tally: () => assert.fail('a process of its own tells nobody'),
};

type Given = Partial<RateLimits> & {
  readonly store?: Tallying;
  readonly onFailure?: (error: unknown) => void;
};

function limiterOf({ store = alone, onFailure = failed, ...given }: Given = {}): RateLimiter {
  const limits = {
    rateLimitFileKibibytes: 0,
    rateLimitReads: 10,
    rateLimitWrites: 5,
    rateLimitSyncMs: syncMs,
    rateLimitKeysMax: 1000,
    behindProxy: false,
    proxiesTrusted: 1,
    ...given,
  };
  return createRateLimiter(limits, store, onFailure);
}

function failed(error: unknown): never {
  assert.fail(String(error));
}

function request(method: string, peer = '203.0.113.7') {
  return { method, peer, fields: readRequestFields([]) };
}

function admitted(
  limiter: RateLimiter,
  requests: number,
  { method = 'GET', principal = anonymous as Principal, peer = '203.0.113.7', nowMs = start } = {},
): number {
  let count = 0;
  for (let sent = 0; sent < requests; sent += 1) {
    if (limiter.admit(request(method, peer), principal, nowMs)?.exceeded !== true) count += 1;
  }
  return count;
}

test('counts GET, HEAD and QUERY against one limit and every other method against another', () => {
  const limiter = limiterOf();
  assert.equal(admitted(limiter, 4), 4);
  assert.equal(admitted(limiter, 4, { method: 'HEAD' }), 4);
  assert.equal(admitted(limiter, 4, { method: 'QUERY' }), 2);
  assert.equal(admitted(limiter, 2, { method: 'POST' }), 2);
  assert.equal(admitted(limiter, 2, { method: 'DELETE' }), 2);
  assert.equal(admitted(limiter, 4, { method: 'PATCH' }), 1);
  assert.equal(limiter.admit(request('PUT'), anonymous, start)?.policy, '"writes";q=5;w=60');
});

test('counts a principal by itself wherever it comes from, and the nameless by their address', () => {
  const limiter = limiterOf();
  assert.equal(admitted(limiter, 6, { principal: alice }), 6);
  assert.equal(admitted(limiter, 6, { principal: alice, peer: '198.51.100.1' }), 4);
  assert.equal(admitted(limiter, 20, { principal: person('bob') }), 10);
  assert.equal(admitted(limiter, 20), 10, 'the address was not charged for them');
  assert.equal(admitted(limiter, 20, { peer: '198.51.100.1' }), 10);
});

test('does not take a principal for the address that it is named like', () => {
  const limiter = limiterOf();
  assert.equal(admitted(limiter, 20, { principal: person('203.0.113.7') }), 10);
  assert.equal(admitted(limiter, 20), 10);
});

test('does not limit the administrator key, which another administrator is not', () => {
  const limiter = limiterOf();
  assert.equal(limiter.admit(request('GET'), operator, start), undefined);
  assert.equal(admitted(limiter, 1000, { principal: operator }), 1000);
  assert.equal(admitted(limiter, 20, { principal: administrator }), 10);
});

test('sets no limit where the setting is 0, for reads and writes each', () => {
  const reads = limiterOf({ rateLimitReads: 0 });
  assert.equal(reads.admit(request('GET'), anonymous, start), undefined);
  assert.equal(admitted(reads, 20, { method: 'POST' }), 5);
  const writes = limiterOf({ rateLimitWrites: 0 });
  assert.equal(writes.admit(request('POST'), alice, start), undefined);
  assert.equal(admitted(writes, 20), 10);
});

test('counts by the forwarded address behind a declared proxy', () => {
  const limiter = limiterOf({ behindProxy: true });
  const from = (address: string) => {
    const fields = readRequestFields(['X-Forwarded-For', address]);
    return limiter.admit({ method: 'GET', peer: '127.0.0.1', fields }, anonymous, start)?.remaining;
  };
  assert.equal(from('198.51.100.1'), '9');
  assert.equal(from('198.51.100.1'), '8');
  assert.equal(from('198.51.100.2'), '9');
});

/** Exchanges happen when the test moves the timers. */
async function interval(context: TestContext, intervals = 1): Promise<void> {
  for (let passed = 0; passed < intervals; passed += 1) {
    context.mock.timers.tick(syncMs);
    await nextTurn();
  }
}

/** Two processes on one store; `tally` may be replaced while they run. */
function pair(context: TestContext, options: Given = {}) {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const shared = createTallies(() => start);
  const calls: (readonly { key: string; add: number }[])[] = [];
  const ways = { tally: (async (tallies) => shared(tallies)) as Store['tally'] };
  const store: Tallying = {
    shared: true,
    tally: (tallies) => {
      calls.push(tallies);
      return ways.tally(tallies);
    },
  };
  const [one, other] = [limiterOf({ store, ...options }), limiterOf({ store, ...options })];
  return { one, other, calls, ways };
}

test('lets two processes admit together no more than the limit, beyond one interval', async (context) => {
  const { one, other } = pair(context);
  assert.equal(admitted(one, 6) + admitted(other, 3), 9);
  // Each tells in one interval, and hears in the next in which it has something to tell.
  await interval(context);
  const second = admitted(one, 1) + admitted(other, 1);
  await interval(context);
  assert.equal(
    second + admitted(one, 20) + admitted(other, 20),
    2,
    'overshoots by the one that neither had heard of',
  );
});

test('overshoots by no more than what is admitted within one interval', async (context) => {
  const { one, other } = pair(context, { rateLimitReads: 1000 });
  let total = 0;
  for (let round = 0; round < 60; round += 1) {
    total += admitted(one, 50) + admitted(other, 50);
    await interval(context);
  }
  assert.ok(total >= 1000 && total <= 1000 + 100, `${total}`);
});

test('learns of a caller that only the other process had seen', async (context) => {
  const { one, other } = pair(context);
  assert.equal(admitted(one, 10), 10);
  await interval(context);
  assert.equal(admitted(other, 1), 1, 'before it has asked');
  await interval(context);
  assert.equal(admitted(other, 20), 0);
});

test('asks what the other processes admitted in the window before', async (context) => {
  const { one, other } = pair(context);
  assert.equal(admitted(one, 10, { nowMs: start + minute - 1 }), 10);
  await interval(context);
  const nowMs = start + minute;
  assert.equal(admitted(other, 1, { nowMs }), 1, 'before it has asked');
  await interval(context);
  assert.equal(admitted(other, 20, { nowMs }), 0);
  assert.equal(admitted(other, 20, { nowMs: nowMs + 29_999 }), 4, 'half of ten has faded, and one was used');
});

test('tells nothing of callers who did not ask, and stops asking when nobody does', async (context) => {
  const { one, calls } = pair(context);
  admitted(one, 3);
  admitted(one, 2, { principal: alice });
  await interval(context);
  const told = (calls[0] ?? []).filter(({ add }) => add > 0).map(({ add }) => add);
  assert.deepEqual(told, [3, 2]);
  await interval(context, 5);
  assert.equal(calls.length, 1);
  admitted(one, 1);
  await interval(context);
  assert.deepEqual(
    calls[1]?.map(({ add }) => add),
    [1],
  );
});

test('counts on alone while the database does not answer, and refuses nobody for it', async (context) => {
  const { one, ways } = pair(context);
  ways.tally = () => Promise.reject(new StoreUnavailable('gone', { retryAfterSeconds: 1 }));
  assert.equal(admitted(one, 4), 4);
  await interval(context, 3);
  assert.equal(admitted(one, 20), 6);
});

test('asks a database that does not answer once at a time, and goes on when it does', async (context) => {
  const { one, other, calls, ways } = pair(context);
  const answering = ways.tally;
  const { promise, resolve } = Promise.withResolvers<void>();
  ways.tally = async (tallies) => {
    await promise;
    return answering(tallies);
  };
  admitted(one, 4);
  await interval(context, 5);
  admitted(one, 1);
  await interval(context, 5);
  assert.equal(calls.length, 1);
  resolve();
  await nextTurn();
  await interval(context, 2);
  assert.equal(calls.length, 2);
  admitted(other, 1);
  await interval(context);
  assert.equal(admitted(other, 20), 4);
});

test('charges nobody twice after an exchange of which the outcome is unknown', async (context) => {
  const { one, ways } = pair(context);
  const carried = ways.tally;
  ways.tally = async (tallies) => {
    await carried(tallies);
    throw new StoreUnavailable('cut', { retryAfterSeconds: 1 });
  };
  assert.equal(admitted(one, 4), 4);
  await interval(context);
  ways.tally = carried;
  assert.equal(admitted(one, 1), 1);
  await interval(context);
  assert.equal(admitted(one, 20), 5);
});

test('goes on from what it counted itself when the shared counts were lost', async (context) => {
  const { one, ways } = pair(context);
  assert.equal(admitted(one, 8), 8);
  await interval(context);
  ways.tally = async (tallies) => tallies.map(({ add }) => add);
  assert.equal(admitted(one, 1), 1);
  await interval(context);
  assert.equal(admitted(one, 20), 1);
});

test('reports a failure that is no passing one, once until it is over', async (context) => {
  const onFailure = mock.fn();
  const { one, ways } = pair(context, { onFailure });
  const working = ways.tally;
  const broken = () => Promise.reject(new TypeError('no such table'));
  const ask = async (tally: Store['tally']) => {
    ways.tally = tally;
    admitted(one, 1);
    await interval(context);
  };
  await ask(broken);
  await ask(broken);
  assert.equal(onFailure.mock.callCount(), 1);
  await ask(working);
  await ask(broken);
  assert.equal(onFailure.mock.callCount(), 2);
});

test('tells many callers in parts', async (context) => {
  const { one, calls } = pair(context, { rateLimitKeysMax: 10_000 });
  for (let caller = 0; caller < 2500; caller += 1) admitted(one, 1, { principal: person(`p${caller}`) });
  context.mock.timers.tick(syncMs);
  for (let turn = 0; turn < 50; turn += 1) await nextTurn();
  assert.equal(
    calls.reduce((sum, { length }) => sum + length, 0),
    5000,
    'each is asked for in two windows',
  );
  assert.ok(calls.every(({ length }) => length <= 250));
});

test('begins no exchange once it is closed', async (context) => {
  const { one, calls } = pair(context);
  admitted(one, 1);
  await one.close();
  await interval(context, 2);
  admitted(one, 1);
  await interval(context, 2);
  assert.equal(calls.length, 0);
});

test('counts principals with long ids by a digest, each for itself', () => {
  const limiter = limiterOf();
  const long = 'x'.repeat(10_000);
  const one = person(`${long}1`);
  const other = person(`${long}2`);
  assert.equal(admitted(limiter, 11, { principal: one }), 10);
  assert.equal(admitted(limiter, 1, { principal: other }), 1);
});

test('holds as many counters as the table of memory says: of each limit, those of principals and of addresses', () => {
  assert.equal(memoryBounds.rateCounters.part, 2 * rateLimits.length);
});

test('octets of files count as further requests, once they are known, and never more than the limit', () => {
  const limiter = limiterOf({ rateLimitFileKibibytes: 1 });
  const charge = (octets: number, method = 'GET') =>
    limiter.chargeOctets(request(method), anonymous, octets, start);
  charge(1023);
  charge(3500);
  charge(5120, 'PUT');
  assert.equal(admitted(limiter, 20), 7);
  assert.equal(admitted(limiter, 20, { method: 'PUT' }), 0);
  charge(1e12);
  const { retryAfterSeconds } = limiter.admit(request('GET'), anonymous, start) ?? { retryAfterSeconds: 0 };
  assert.ok(retryAfterSeconds <= 120, String(retryAfterSeconds));
  const without = limiterOf();
  without.chargeOctets(request('GET'), anonymous, 1e12, start);
  assert.equal(admitted(without, 20), 10);
});

import assert from 'node:assert/strict';
import { argon2Sync, randomBytes } from 'node:crypto';
import test, { type TestContext } from 'node:test';
import {
  createPasswordHasher,
  type PasswordHasher,
  parsePhcString,
} from '../../../src/accounts/passwords/hasher.ts';
import type { Settings } from '../../../src/config/settings.ts';
import type { Observation, Observe } from '../../../src/observe/observation.ts';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { processorMs } from '../../harness/processor-time.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { servicesOver } from '../../harness/services-over.ts';

const cheap: Partial<Settings> = {
  passwordMemoryKibibytes: 64,
  passwordPasses: 1,
  passwordBytesMax: 64,
  passwordHashesWaitingMax: 100,
};

type Given = Partial<Settings> & { readonly cores?: number; readonly observe?: Observe };

function hasherOf({ cores = 2, observe = () => undefined, ...settings }: Given): PasswordHasher {
  return createPasswordHasher(servicesOver({}, { observe, settings: { ...cheap, ...settings } }), cores);
}

function open(context: TestContext, given: Given = {}): PasswordHasher {
  const hasher = hasherOf(given);
  context.after(() => hasher.close());
  return hasher;
}

/** Of test.c of the reference implementation (P-H-C/phc-winner-argon2). */
const vectors: readonly (readonly [password: string, hash: string])[] = [
  ['password', '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'],
  ['password', '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc'],
  [
    'differentpassword',
    '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$C4TWUs9rDEvq7w3+J4umqA32aWKB1+DSiRuBfYxFj94',
  ],
  ['password', '$argon2id$v=19$m=65536,t=2,p=1$ZGlmZnNhbHQ$vfMrBczELrFdWP0ZsfhWsRPaHppYdP3MVEMIVlqoFBw'],
];

for (const [password, hash] of vectors) {
  test(`agrees with the reference implementation on ${hash.slice(0, 40)}...`, async (context) => {
    const hasher = open(context);
    assert.equal(await hasher.verify(password, hash), true);
    assert.equal(await hasher.verify(`${password}!`, hash), false);
  });
}

test('writes a hash with the costs of the settings and a salt of its own', async (context) => {
  const hasher = open(context);
  const [one, other] = [await hasher.hash('correct horse'), await hasher.hash('correct horse')];
  const parsed = parsePhcString(one);
  assert.deepEqual(parsed?.costs, { memoryKibibytes: 64, passes: 1, lanes: 1 });
  assert.equal(parsed?.salt.length, 16);
  assert.notEqual(one, other);
  const expected = argon2Sync('argon2id', {
    message: 'correct horse',
    nonce: parsed?.salt ?? '',
    memory: 64,
    passes: 1,
    parallelism: 1,
    tagLength: 32,
  });
  assert.deepEqual(parsed?.tag, expected);
});

test('takes the same letters composed in another way for the same password', async (context) => {
  const hasher = open(context);
  const hash = await hasher.hash('café'.normalize('NFC'));
  assert.equal(await hasher.verify('café'.normalize('NFD'), hash), true);
  assert.equal(await hasher.verify('cafe', hash), false);
});

test('neither trims nor folds a password', async (context) => {
  const hasher = open(context);
  const hash = await hasher.hash('Correct horse');
  assert.equal(await hasher.verify('correct horse', hash), false);
  assert.equal(await hasher.verify('Correct horse ', hash), false);
});

test('says no where there is no hash, or none that can be read', async (context) => {
  const hasher = open(context);
  assert.equal(await hasher.verify('anything', null), false);
  assert.equal(await hasher.verify('', null), false);
  assert.equal(await hasher.verify('anything', 'plain text'), false);
});

test('says no to a password that is too long to have been set', async (context) => {
  const hasher = open(context);
  const long = 'x'.repeat(65);
  const salt = randomBytes(16);
  const tag = argon2Sync('argon2id', {
    message: long,
    nonce: salt,
    memory: 64,
    passes: 1,
    parallelism: 1,
    tagLength: 32,
  });
  const unpadded = (octets: Buffer) => octets.toString('base64').replaceAll('=', '');
  const hash = `$argon2id$v=19$m=64,t=1,p=1$${unpadded(salt)}$${unpadded(tag)}`;
  assert.equal(await hasher.verify(long, hash), false);
});

test('says no to half of a surrogate pair, which UTF-8 would make another character', async (context) => {
  const hasher = open(context);
  const hash = await hasher.hash('pass\ufffdword');
  assert.equal(await hasher.verify('pass\ud83dword', hash), false);
});

test('tells a hash of other costs, and what is none, as outdated', async (context) => {
  const hasher = open(context);
  assert.equal(hasher.isOutdated(await hasher.hash('correct horse')), false);
  for (const given of [{ passwordMemoryKibibytes: 128 }, { passwordPasses: 2 }]) {
    assert.equal(hasher.isOutdated(await open(context, given).hash('correct horse')), true);
  }
  assert.equal(hasher.isOutdated('plain text'), true);
});

test('verifies a hash of other costs by those that it was made with', async (context) => {
  const costly = await open(context, { passwordMemoryKibibytes: 256, passwordPasses: 3 }).hash(
    'correct horse',
  );
  assert.equal(await open(context).verify('correct horse', costly), true);
});

test('refuses more hashes than may wait, and says how many waited', async (context) => {
  const observed: Observation[] = [];
  const observe = (fact: Observation) => void observed.push(fact);
  const hasher = open(context, { passwordHashesWaitingMax: 2, observe });
  const running = hasher.verify('a', null);
  const waiting = [hasher.verify('b', null), hasher.verify('c', null)];
  assert.equal(hasher.waiting(), 2);
  await assert.rejects(hasher.verify('d', null), (error) => {
    assert.ok(error instanceof StoreUnavailable);
    assert.ok(error.retryAfterSeconds >= 1);
    return true;
  });
  assert.deepEqual(observed, [{ kind: 'hashing-refused', waiting: 2 }]);
  await Promise.all([running, ...waiting]);
  assert.equal(await hasher.verify('e', null), false);
});

test('lets passwords that are set neither fill the queue of those that are compared nor go before all of them', async (context) => {
  const hasher = open(context, { passwordHashesWaitingMax: 4 });
  const order: string[] = [];
  const note = async (what: string, hash: Promise<unknown>) => {
    await hash;
    order.push(what);
  };
  const jobs = [note('running', hasher.verify('a', null))];
  for (let at = 0; at < 4; at += 1) jobs.push(note('set', hasher.hash(`password ${at}`)));
  await assert.rejects(hasher.hash('one too many'), StoreUnavailable);
  for (let at = 0; at < 2; at += 1) jobs.push(note('compare', hasher.verify(`password ${at}`, null)));
  await Promise.all(jobs);
  assert.deepEqual(order, ['running', 'set', 'compare', 'set', 'compare', 'set', 'set']);
});

test('runs one hash at a time on two processors, and two on four', async (context) => {
  for (const [cores, waitingOfThree] of [
    [1, 2],
    [2, 2],
    [3, 2],
    [4, 1],
  ] as const) {
    const hasher = open(context, { cores });
    const hashes = [hasher.hash('a'), hasher.hash('b'), hasher.hash('c')];
    await Promise.resolve();
    assert.equal(hasher.waiting(), waitingOfThree, `${cores} processors`);
    await Promise.all(hashes);
  }
});

/** Enough that one hash outlasts everything that is asked for while it runs. */
const slow = { passwordMemoryKibibytes: 65_536, passwordPasses: 4 };

test('lets the event loop turn while it hashes', async (context) => {
  const hasher = open(context, slow);
  let turns = 0;
  let hashing = true;
  const turn = () => {
    turns += 1;
    if (hashing) setImmediate(turn);
  };
  setImmediate(turn);
  await hasher.hash('correct horse');
  hashing = false;
  // A hash on the calling thread would leave room for one or two.
  assert.ok(turns > 100, `${turns} turns`);
});

test('ends what runs and refuses what waits when it is closed', async () => {
  const hasher = hasherOf(slow);
  const running = hasher.verify('a', null);
  const waiting = hasher.verify('b', null);
  const refused = assert.rejects(waiting, StoreUnavailable);
  await hasher.close();
  await refused;
  assert.equal(await running, false);
  await assert.rejects(hasher.hash('c'), StoreUnavailable);
});

test('fails one hash that memory does not suffice for, and goes on', async (context) => {
  const hasher = open(context);
  const impossible =
    '$argon2id$v=19$m=4294967295,t=1,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4';
  await assert.rejects(hasher.verify('a', impossible), StoreUnavailable);
  assert.equal(await hasher.verify('a', await hasher.hash('a')), true);
});

test('costs the same whether a hash stands there, none does, or the password is too long', async (context) => {
  const hasher = open(context, { passwordMemoryKibibytes: 8192, passwordPasses: 2 });
  const hash = await hasher.hash('correct horse');
  const kinds: Record<string, () => Promise<boolean>> = {
    right: () => hasher.verify('correct horse', hash),
    wrong: () => hasher.verify('battery staple', hash),
    nobody: () => hasher.verify('correct horse', null),
    long: () => hasher.verify('x'.repeat(60_000), hash),
  };
  const rounds = roundsOf(9, 25);
  const taken: Record<string, number[]> = { right: [], wrong: [], nobody: [], long: [] };
  // In turns, so that whatever else this process does falls on all of them.
  for (let round = 0; round < rounds; round += 1) {
    for (const [kind, verify] of Object.entries(kinds)) {
      const began = processorMs();
      await verify();
      taken[kind]?.push(processorMs() - began);
    }
  }
  const medianOf = (times: number[] = []) => times.sort((a, b) => a - b)[(rounds - 1) / 2] ?? 0;
  const medians = Object.fromEntries(Object.entries(taken).map(([kind, times]) => [kind, medianOf(times)]));
  for (const median of Object.values(medians)) {
    const ratio = median / (medians.wrong ?? 0);
    assert.ok(ratio > 0.5 && ratio < 2, JSON.stringify(medians));
  }
});

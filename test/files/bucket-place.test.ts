/** Files in a bucket, over the strict double: the contract of every place, and what is particular to a bucket. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { ConfigurationError } from '../../src/config/inspection.ts';
import { openPlace, placeMistake } from '../../src/files/open-place.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { listen } from '../harness/listening.ts';
import { type S3Double, type S3DoubleOptions, startS3Double } from '../harness/s3-double.ts';
import { bucketContract, type OpenedBucket, openBucket } from './open-bucket.ts';
import { arrive, keepNew, keysOf, readPart } from './place-contract.ts';

const MiB = 1_048_576;
const hourMs = 3_600_000;

bucketContract('bucket', {});

type Rules = Partial<Parameters<typeof openBucket>[0]>;

async function openOver(double: S3Double, context: TestContext, rules: Rules = {}): Promise<OpenedBucket> {
  const opened = await openBucket({ filesUrl: double.filesUrl(), credential: double.credential, ...rules });
  context.after(() => opened.place.close());
  return opened;
}

test('copies the local file, and puts long ones in parts', async (context) => {
  const double = await startS3Double({}, context);
  const { place } = await openOver(double, context);
  const short = await keepNew(place, randomBytes(6 * MiB));
  assert.ok(existsSync(short.path));
  assert.match(double.objects.get(short.key)?.etag ?? '', /^"[0-9a-f]{32}"$/);
  const long = await keepNew(place, randomBytes(6 * MiB + 1));
  assert.match(double.objects.get(long.key)?.etag ?? '', /^"[0-9a-f]{32}-2"$/);
  assert.match(double.objects.get(long.key)?.checksum ?? '', /-2$/);
  assert.equal(double.uploads.size, 0);
});

test('asks for the tag of a file in parts where the completion tells none, and reads nothing back', async (context) => {
  const double = await startS3Double({ checksums: false }, context);
  const { place } = await openOver(double, context);
  await keepNew(place, randomBytes(6 * MiB + 1));
  const ofFile = double.calls.filter(({ key }) => key !== '').map(({ method }) => method);
  assert.deepEqual(ofFile, ['POST', 'PUT', 'PUT', 'POST', 'HEAD']);
});

test('lists its own keys alone, and leaves other objects of the bucket', async (context) => {
  const double = await startS3Double({}, context);
  const { place } = await openOver(double, context, { filesUrl: double.filesUrl('/comity') });
  const kept = await keepNew(place, randomBytes(9));
  const object = double.objects.get(`comity/${kept.key}`);
  assert.ok(object !== undefined);
  for (const name of [kept.key, 'comity/README', `comity/x/${kept.key}`, `other/${kept.key}`]) {
    double.objects.set(name, object);
  }
  assert.deepEqual(await keysOf(place, ''), [kept.key]);
  await place.remove(kept.key);
  assert.equal(double.objects.size, 4);
});

for (const aheadMs of [hourMs, -hourMs]) {
  test(`takes the clock of a store that is ${aheadMs > 0 ? 'ahead' : 'behind'} by an hour, once`, async (context) => {
    const double = await startS3Double({}, context);
    double.clockAheadMs = aheadMs;
    const { place, observed } = await openOver(double, context);
    const { key, octets } = await keepNew(place, randomBytes(9));
    assert.deepEqual(await readPart(place, key, 0, 9), octets);
    assert.equal(double.calls.filter(({ status }) => status === 403).length, 1);
    double.clockAheadMs = 0;
    assert.deepEqual(await readPart(place, key, 0, 9), octets);
    assert.deepEqual(observed, []);
  });
}

/** What an operator reads at the start. */
const mistakes: readonly (readonly [
  string,
  S3DoubleOptions,
  Rules | ((double: S3Double) => Rules),
  RegExp,
])[] = [
  [
    'an unknown key',
    {},
    { credential: { accessKey: 'AKIOTHER', secretKey: 's' } },
    /does not know the access key: correct COMITY_FILES_S3_ACCESS_KEY$/,
  ],
  [
    'a wrong secret',
    {},
    { credential: { accessKey: 'AKIDOUBLE', secretKey: 'a-wrong-secret' } },
    /refuses the signature: correct COMITY_FILES_S3_SECRET_KEY, and the region/,
  ],
  [
    'another region',
    { region: 'eu-north-1' },
    (double) => ({ filesUrl: double.filesUrl().replace('eu-north-1', 'eu-west-1') }),
    /is in the region eu-north-1, not in eu-west-1: set region=eu-north-1$/,
  ],
  [
    'no bucket',
    {},
    (double) => ({ filesUrl: double.filesUrl().replace('//files', '//other') }),
    /^the bucket other of COMITY_FILES_URL, at http:\S+, does not exist: make it/,
  ],
  [
    'a token that ended',
    { credential: { accessKey: 'AKIDOUBLE', secretKey: 's', sessionToken: 't' } },
    { credential: { accessKey: 'AKIDOUBLE', secretKey: 's', sessionToken: 'old' } },
    /refuses the access key \(the bucket answered 403 InvalidToken/,
  ],
];

for (const [name, options, rules, sentence] of mistakes) {
  test(`says at the start what is wrong: ${name}`, async (context) => {
    const double = await startS3Double(options, context);
    const given = typeof rules === 'function' ? rules(double) : rules;
    await assert.rejects(openOver(double, context, given), (error) => {
      assert.ok(error instanceof ConfigurationError);
      assert.match(error.message, sentence);
      for (const text of ['a-wrong-secret', double.credential.secretKey])
        assert.ok(text.length < 3 || !error.message.includes(text));
      return true;
    });
  });
}

test('says at the start which permissions are missing', async (context) => {
  for (const isRefused of [
    (call: URLSearchParams) => call.has('list-type'),
    (call: URLSearchParams) => call.has('uploads'),
  ]) {
    const double = await startS3Double({}, context);
    double.fault('access-denied', { on: ({ query }) => isRefused(query) });
    await assert.rejects(
      openOver(double, context),
      /it must permit to get, put and delete objects, and to list them and multipart uploads$/,
    );
  }
});

test('starts without a bucket that is not reached, and uses it when it is there', async (context) => {
  const gone = await startS3Double({}, context);
  await gone.close();
  const { place, observed } = await openOver(gone, context, { timeoutMs: 200 });
  assert.deepEqual(
    observed.map(({ kind }) => kind),
    ['bucket-failed'],
  );
  const file = arrive(place, randomBytes(9));
  await assert.rejects(place.keep(file.key, file), StoreUnavailable);

  const double = await startS3Double({}, context);
  double.fault('slow-down', { times: 4 });
  const later = await openOver(double, context);
  assert.deepEqual(
    later.observed.map(({ kind }) => kind),
    ['bucket-failed'],
  );
  const { key, octets } = await keepNew(later.place, randomBytes(9));
  assert.deepEqual(await readPart(later.place, key, 0, 9), octets);
});

test('observes no credential', async (context) => {
  const double = await startS3Double(
    { credential: { accessKey: 'AKIDOUBLE', secretKey: 'the-secret-key', sessionToken: 'the-token' } },
    context,
  );
  const { place, observed } = await openOver(double, context);
  const { key } = await keepNew(place, randomBytes(50_000));
  for (const fault of ['access-denied', 'wrong-range', 'error-page'] as const) {
    double.fault(fault);
    await assert.rejects(place.read(key, 1, 50_000));
  }
  await double.close();
  await assert.rejects(place.read(key, 1, 50_000));
  assert.equal(observed.length, 4);
  const { inspect } = await import('node:util');
  const text = inspect(observed, { depth: 20, showHidden: true });
  for (const secret of ['the-secret-key', 'the-token', 'Signature='])
    assert.ok(!text.includes(secret), secret);
});

test('has no more connections than the setting permits, and refuses who waits too long for one', async (context) => {
  const double = await startS3Double({}, context);
  const { place } = await openOver(double, context, { connectionsMax: 2, timeoutMs: 1000 });
  const { key, octets } = await keepNew(place, randomBytes(8 * MiB));
  const all = await Promise.all(Array.from({ length: 12 }, () => readPart(place, key, 0, 100_000)));
  for (const each of all) assert.deepEqual(each, octets.subarray(0, 100_000));
  assert.equal(double.connectionsSeen(), 2);
  const held = await Promise.all([place.read(key, 0, 8 * MiB), place.read(key, 0, 8 * MiB)]);
  await assert.rejects(place.read(key, 0, 9), StoreUnavailable);
  for (const stream of held) assert.ok((await buffer(stream)).equals(octets));
});

test('ends what is under way when it is closed', async (context) => {
  const double = await startS3Double({}, context);
  const { place } = await openOver(double, context);
  const { key } = await keepNew(place, randomBytes(8 * MiB));
  const stream = await place.read(key, 0, 8 * MiB);
  await place.close();
  await assert.rejects(buffer(stream), StoreUnavailable);
  await assert.rejects(place.read(key, 0, 9), StoreUnavailable);
});

test('reaches no listener of this program', async (context) => {
  const own = await listen(
    createServer((_request, response) => response.end()),
    context,
  );
  const { loadSettings } = await import('../../src/config/load-settings.ts');
  const { settings } = loadSettings({
    COMITY_FILES_URL: `s3://files?endpoint=${own.url}`,
    COMITY_FILES_S3_ACCESS_KEY: 'A',
    COMITY_FILES_S3_SECRET_KEY: 'B',
  });
  const observed: unknown[] = [];
  const place = await openPlace(settings, {
    observe: (observation) => observed.push(observation),
    clock: Date.now,
    ownListeners: () => [{ address: '127.0.0.1', port: own.port }],
  });
  context.after(() => place.close());
  assert.equal(own.sockets.size, 0);
  assert.equal(observed.length, 1);
});

test('asks for a place that processes on one database share', () => {
  const databaseUrl = 'postgres://localhost/comity';
  assert.match(
    placeMistake({ databaseUrl, filesUrl: undefined }) ?? '',
    /set COMITY_FILES_URL to a folder that all of them see/,
  );
  assert.equal(placeMistake({ databaseUrl, filesUrl: 'file:///srv/files' }), undefined);
  assert.equal(placeMistake({ databaseUrl: undefined, filesUrl: undefined }), undefined);
});

/** Ranges of a representation, over sockets: which octets a GET gets, for a file and for octets in memory, and what ignores Range. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { ContentFile } from '../../src/http/message.ts';
import { formatDigest } from '../../src/http/syntax/digest.ts';
import type { Operation, Representation, Resource } from '../../src/kernel/resource.ts';
import { openEmbedded } from '../harness/stores.ts';
import { until } from '../harness/until.ts';
import { roomOf, type Served, serve, surround } from '../harness/walked-resources.ts';
import { openRaw, type RawAnswer } from '../wire/server/raw-client.ts';

const store = await openEmbedded();
const modifiedAt = Date.UTC(2026, 7, 1, 9, 30, 0, 500);
const lastModified = 'Sat, 01 Aug 2026 09:30:00 GMT';
const hundred = Buffer.from(
  Array.from({ length: 100 }, (_, at) => String.fromCharCode(33 + (at % 90))).join(''),
);
const digest = formatDigest('sha-256', createHash('sha256').update(hundred).digest());
let served: Served;
let reads = 0;

function fileOf(content: Uint8Array): ContentFile {
  return {
    bytes: content.length,
    async read(first, end, further = []) {
      reads += 1;
      return (async function* () {
        // In several pieces, so that parts are joined from them.
        for (const extent of [{ first, end }, ...further])
          for (let at = extent.first; at < extent.end; at += 7)
            yield content.subarray(at, Math.min(at + 7, extent.end));
      })();
    },
  };
}

function resourceAt(
  name: string,
  given: Partial<Representation> & Pick<Representation, 'content'>,
): Resource {
  const validators = { tag: 'v1', modifiedAt };
  const representation = { mediaType: 'text/plain', validators, cacheControl: 'no-cache', ...given };
  const operation: Operation = {
    permission: () => 'granted',
    ranges: true,
    standing: () => ({ exists: true, visible: true, permitted: true }),
    validators: () => representation.validators,
    represent: () => representation,
  };
  return {
    pattern: `/${name}`,
    operations: new Map([['GET', operation]]),
    constantFields: [],
    offers: ['*/*'],
  };
}

/** More than sockets take. */
const endless = {
  begun: 0,
  ended: 0,
  file: {
    bytes: 1_000_000_000,
    async read(first, end) {
      endless.begun += 1;
      return (async function* () {
        const piece = Buffer.alloc(65_536);
        try {
          for (let at = first; at < end; at += piece.length) yield piece.subarray(0, end - at);
        } finally {
          endless.ended += 1;
        }
      })();
    },
  } satisfies ContentFile,
};

const untagged = { validators: { tag: null, modifiedAt: null } };
const long = Buffer.alloc(10_000, 'x');

before(async () => {
  const surroundings = surround(store, {}, modifiedAt + 60_000);
  served = await serve(
    roomOf(surroundings, [
      resourceAt('file', { content: fileOf(hundred), digest }),
      resourceAt('octets', { content: hundred, ranges: true, digest }),
      resourceAt('empty', { content: fileOf(Buffer.alloc(0)) }),
      resourceAt('untagged', { content: fileOf(hundred), ...untagged }),
      resourceAt('fresh', {
        content: fileOf(hundred),
        validators: { tag: null, modifiedAt: modifiedAt + 59_600 },
      }),
      resourceAt('long', { content: fileOf(long) }),
      resourceAt('text', { content: 'x'.repeat(100) }),
      resourceAt('whole', { content: hundred }),
      resourceAt('endless', { content: endless.file }),
    ]),
  );
});

after(() => served?.stop());

async function send(method: string, path: string, fields: readonly string[]): Promise<RawAnswer> {
  const client = await openRaw(served.port);
  try {
    const lines = [`${method} /${path} HTTP/1.1`, 'Host: a', ...fields, '', ''];
    return await client.send(lines.join('\r\n')).answer({ headOnly: method === 'HEAD' });
  } finally {
    client.destroy();
  }
}

/** Status, Content-Range and content. */
async function shown(path: string, ...fields: readonly string[]): Promise<readonly unknown[]> {
  const { status, fields: got, body } = await send('GET', path, fields);
  return [status, got.get('content-range'), status === 416 ? '' : body];
}

const whole = hundred.toString();
const part = (first: number, end: number) => whole.slice(first, end);

for (const path of ['file', 'octets']) {
  describe(`of ${path}`, () => {
    for (const [range, first, end] of [
      ['bytes=0-9', 0, 10],
      ['bytes=90-', 90, 100],
      ['bytes=90-1000', 90, 100],
      ['bytes=-10', 90, 100],
      ['bytes=-1000', 0, 100],
      ['bytes=0-', 0, 100],
      ['BYTES=5-5', 5, 6],
      ['bytes=,, 0-9', 0, 10],
      ['bytes=0-9,5-19, 20-29', 0, 30],
      ['bytes=0-9,200-300', 0, 10],
    ] as const) {
      test(`gives the octets of ${range}`, async () => {
        const found = await shown(path, `Range: ${range}`);
        assert.deepEqual(found, [206, `bytes ${first}-${end - 1}/100`, part(first, end)]);
      });
    }

    for (const range of ['bytes=100-', 'bytes=-0', 'bytes=200-300,1000-']) {
      test(`refuses ${range} with the length`, async () => {
        assert.deepEqual(await shown(path, `Range: ${range}`), [416, 'bytes */100', '']);
      });
    }

    for (const range of [
      ...['lines=0-9', 'bytes=9-0', 'bytes=a', 'bytes=', 'bytes=0-9 20-29'],
      `bytes=${Array.from({ length: 17 }, (_, at) => `${2 * at}-${2 * at}`)}`,
    ]) {
      test(`ignores ${range.slice(0, 30)}`, async () => {
        assert.deepEqual(await shown(path, `Range: ${range}`), [200, undefined, whole]);
      });
    }

    test('ignores a Range that comes twice', async () => {
      const found = await shown(path, 'Range: bytes=0-1', 'Range: bytes=2-3');
      assert.deepEqual(found, [200, undefined, whole]);
    });

    test('gives several ranges as parts in their order, each with its place', async () => {
      const { status, fields, body } = await send('GET', path, ['Range: bytes=-2,0-0, 20-29,200-']);
      const boundary = 'between-parts';
      assert.deepEqual(
        [status, fields.get('content-range'), fields.get('content-type')],
        [206, undefined, `multipart/byteranges; boundary=${boundary}`],
      );
      const head = (range: string) =>
        `--${boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes ${range}/100\r\n\r\n`;
      const parts = [
        `${head('98-99')}${part(98, 100)}`,
        `${head('0-0')}${part(0, 1)}`,
        `${head('20-29')}${part(20, 30)}`,
      ];
      assert.equal(body, `${parts.join('\r\n')}\r\n--${boundary}--\r\n`);
      assert.equal(fields.get('content-length'), String(body.length));
    });

    test('takes 16 parts', async () => {
      const ranges = Array.from({ length: 16 }, (_, at) => `${2 * at}-${2 * at}`);
      const { status, body } = await send('GET', path, [`Range: bytes=${ranges}`]);
      assert.deepEqual([status, body.split('Content-Range').length], [206, 17]);
    });

    for (const [validator, applies] of [
      ['"v1"', true],
      ['"v2"', false],
      ['W/"v1"', false],
      ['"v1", "v2"', false],
      ['*', false],
      ['v1', false],
      ['"v1-gzip"', false],
      [lastModified, true],
      ['Sat, 01 Aug 2026 09:30:01 GMT', false],
      ['Sat, 01 Aug 2026 09:29:59 GMT', false],
      ['Saturday, 01-Aug-26 09:30:00 GMT', true],
      ['yesterday', false],
      ['', false],
    ] as const) {
      test(`${applies ? 'applies' : 'does not apply'} Range with If-Range: ${validator}`, async () => {
        const [status, range] = await shown(path, 'Range: bytes=0-9', `If-Range: ${validator}`);
        assert.deepEqual([status, range], applies ? [206, 'bytes 0-9/100'] : [200, undefined]);
      });
    }

    test('does not apply Range with two If-Range fields', async () => {
      const found = await shown(path, 'Range: bytes=0-9', 'If-Range: "v1"', 'If-Range: "v1"');
      assert.deepEqual(found, [200, undefined, whole]);
    });

    test('gives an unsatisfiable Range the whole if If-Range names another representation', async () => {
      const found = await shown(path, 'Range: bytes=200-', 'If-Range: "v2"');
      assert.deepEqual(found, [200, undefined, whole]);
    });

    test('evaluates preconditions before Range: 304 and 412', async () => {
      assert.equal((await send('GET', path, ['Range: bytes=0-9', 'If-None-Match: "v1"'])).status, 304);
      assert.equal(
        (await send('GET', path, ['Range: bytes=0-9', `If-Modified-Since: ${lastModified}`])).status,
        304,
      );
      assert.equal((await send('GET', path, ['Range: bytes=0-9', 'If-Match: "v2"'])).status, 412);
      assert.equal((await send('GET', path, ['Range: bytes=0-9', 'If-Match: "v1"'])).status, 206);
      assert.equal((await send('GET', path, ['Range: bytes=200-', 'If-None-Match: "v1"'])).status, 304);
    });

    test('ignores Range of HEAD, and reads nothing for it', async () => {
      const readsBefore = reads;
      const head = await send('HEAD', path, ['Range: bytes=0-9']);
      const { fields } = await send('GET', path, []);
      assert.deepEqual([head.status, head.fields.get('content-range')], [200, undefined]);
      for (const name of [
        'content-length',
        'content-type',
        'etag',
        'last-modified',
        'accept-ranges',
        'cache-control',
      ])
        assert.equal(head.fields.get(name), fields.get(name), name);
      assert.equal(fields.get('accept-ranges'), 'bytes');
      assert.ok(reads <= readsBefore + 1);
    });

    test('has the fields of the whole in a part', async () => {
      const ranged = await send('GET', path, ['Range: bytes=0-9']);
      const { fields } = await send('GET', path, []);
      assert.ok(ranged.fields.has('date'));
      for (const [name, value] of fields) {
        // The time of the second answer may be of the next second.
        if (name !== 'content-length' && name !== 'date') assert.equal(ranged.fields.get(name), value, name);
      }
      assert.equal(ranged.fields.get('x-content-type-options'), 'nosniff');
    });

    test('gives the digest of the whole to who wants it, also with a part', async () => {
      for (const fields of [[], ['Range: bytes=0-9'], ['Range: bytes=0-0,9-9']]) {
        const wanted = await send('GET', path, [...fields, 'Want-Repr-Digest: sha-512=3, sha-256=10']);
        assert.equal(wanted.fields.get('repr-digest'), digest);
        const unwanted = await send('GET', path, [...fields, 'Want-Repr-Digest: sha-256=0']);
        assert.equal(unwanted.fields.get('repr-digest'), undefined);
        assert.equal((await send('GET', path, fields)).fields.get('repr-digest'), undefined);
      }
    });
  });
}

test('refuses each range of an empty file, and gives it whole without one', async () => {
  for (const range of ['bytes=0-', 'bytes=-1', 'bytes=0-0'])
    assert.deepEqual(await shown('empty', `Range: ${range}`), [416, 'bytes */0', '']);
  assert.deepEqual(await shown('empty'), [200, undefined, '']);
});

test('serves ranges without a validator, which no If-Range can name', async () => {
  assert.equal((await shown('untagged', 'Range: bytes=0-9'))[0], 206);
  assert.equal((await shown('untagged', 'Range: bytes=0-9', 'If-Range: "v1"'))[0], 200);
  assert.equal((await shown('untagged', 'Range: bytes=0-9', `If-Range: ${lastModified}`))[0], 200);
});

test('does not go by the date of a second that is not over', async () => {
  assert.equal((await shown('fresh', 'Range: bytes=0-9', 'If-Range: Sat, 01 Aug 2026 09:31:00 GMT'))[0], 200);
});

test('sends what has ranges without a content coding', async () => {
  const { fields } = await send('GET', 'long', ['Accept-Encoding: br, gzip']);
  assert.deepEqual([fields.get('content-encoding'), fields.get('content-length')], [undefined, '10000']);
});

for (const path of ['text', 'whole']) {
  test(`ignores Range of ${path}, which is served whole, and says so`, async () => {
    for (const fields of [['Range: bytes=0-9'], ['Range: bytes=200-']]) {
      const { status, fields: got, body } = await send('GET', path, fields);
      assert.deepEqual([status, got.get('accept-ranges'), body.length], [200, 'none', 100]);
    }
  });
}

test('ends the reading of a part when the client leaves', async () => {
  const client = await openRaw(served.port);
  client.socket.pause();
  client.send('GET /endless HTTP/1.1\r\nHost: a\r\nRange: bytes=0-99999999,200000000-\r\n\r\n');
  await until(() => endless.begun === 1);
  client.destroy();
  await until(() => endless.ended === 1);
  assert.equal(endless.begun, 1, 'the second part was not opened');
});

test('describes a range beyond the file in the body of the refusal', async () => {
  const { fields, body } = await send('GET', 'file', ['Range: bytes=100-']);
  assert.equal(JSON.parse(body).code, 'range_not_satisfiable');
  assert.equal(fields.get('cache-control'), 'no-store');
});

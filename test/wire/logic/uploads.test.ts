/** Files in the input of actions over the wire, on both stores. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';

const config = fileURLToPath(new URL('./fixtures/uploads.config.ts', import.meta.url));
/** No text in any coding. */
const octets = new Uint8Array([0, 255, 13, 10, 45, 45, 128]);
const MiB = 1024 * 1024;

type Body = Record<string, unknown>;
type Part = readonly [name: string, value: string | Blob, fileName?: string];
type Given = { readonly status: number; readonly headers: Headers; readonly body: Body };

for (const engine of engineNames) {
  describe(`uploads on ${engine}`, () => {
    let server: RunningServer;

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      const env = database === undefined ? {} : { COMITY_DATABASE_URL: database.url };
      server = await startServer({ config, env });
      if (database !== undefined) after(() => database.dispose());
    });

    after(() => server.stop());

    const send = async (
      method: string,
      path: string,
      body: string | FormData,
      headers = {},
    ): Promise<Given> => {
      const answer = await fetch(`${server.url}/api/v1/${path}`, {
        ...{ method, body },
        headers: { Authorization: `Bearer ${adminKey}`, ...headers },
      });
      return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Body };
    };
    const form = (...parts: readonly Part[]): FormData => {
      const data = new FormData();
      for (const [name, value, fileName] of parts) {
        if (typeof value === 'string') data.append(name, value);
        else data.append(name, value, fileName);
      }
      return data;
    };
    const png = (bytes: Uint8Array<ArrayBuffer> = octets): Blob => new Blob([bytes], { type: 'image/png' });
    /** A part as some other client writes it. */
    const raw = (head: string, content = ''): readonly [string, object] => [
      `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n--b--\r\n`,
      { 'Content-Type': 'multipart/form-data; boundary=b' },
    ];
    const photoOf = async ({ body }: Given): Promise<Body> =>
      (await server.send('GET', `/api/v1/photos/${body.id}`)).json();

    test('give the handler the octets, the name and the type, beside other members', async () => {
      const made = await send('POST', 'photos/add', form(['photo', png(), 'Zoë "1".png'], ['title', 'One']));
      assert.equal(made.status, 200);
      const { name, type, octets: kept, title } = await photoOf(made);
      assert.deepEqual([name, type, title], ['Zoë "1".png', 'image/png', 'One']);
      assert.equal(kept, Buffer.from(octets).toString('hex'), 'the whole buffer, and nothing beside');
      const plain = await send(
        'POST',
        'photos/add',
        ...raw('name="photo"; filename="C:\\docs\\a/b.txt"', 'abc'),
      );
      assert.deepEqual(await photoOf(plain).then((photo) => [photo.name, photo.type, photo.octets]), [
        'b.txt',
        'text/plain',
        '616263',
      ]);
      const several = await send('POST', 'several', form(['files', png(), 'a'], ['files[]', png(), 'b']));
      assert.deepEqual(several.body, { names: ['a 7', 'b 7'] });
    });

    const long = 'é'.repeat(200);
    for (const [sent, name] of [
      ['..', 'file'],
      ['.', 'file'],
      ['', 'file'],
      ['a/..', 'file'],
      ['..\\..', 'file'],
      ['../../etc/passwd', 'passwd'],
      [' . ', 'file'],
      ['.htaccess', '.htaccess'],
      ['a\u0000\u007f\u202egnp.exe', 'agnp.exe'],
      ['\u200b', 'file'],
      [`${long}.jpeg`, `${'é'.repeat(125)}.jpeg`],
      [long, 'é'.repeat(127)],
    ] as const) {
      test(`have the name ${JSON.stringify(name.slice(0, 20))} where the client says ${JSON.stringify(sent.slice(0, 20))}`, async () => {
        const made = await send('POST', 'photos/add', ...raw(`name="photo"; filename="${sent}"`, 'abc'));
        assert.equal((await photoOf(made)).name, name);
      });
    }

    test('that are missing, or empty controls of a browser, are absent', async () => {
      const missing = await send('POST', 'photos/add', form(['title', 'none']));
      assert.deepEqual([missing.status, missing.body.code], [400, 'field_missing']);
      assert.deepEqual(missing.body.errors, [{ pointer: '/photo', message: 'is required' }]);
      const empty = await send('POST', 'photos/add', ...raw('name="photo"; filename=""'));
      assert.equal(empty.body.code, 'field_missing');
      const both = await send('POST', 'photos/add', form(['photo', png(), 'a'], ['second', png(), 'b']));
      assert.equal(both.body.second, 7);
      const named = await send('POST', 'photos/add', form(['photo', png(new Uint8Array()), 'empty.png']));
      assert.equal((await photoOf(named)).octets, '', 'an empty file is a file');
    });

    test('are held to their rules', async () => {
      const add = (...parts: readonly Part[]) => send('POST', 'photos/add', form(...parts));
      const long = await add(['photo', png(new Uint8Array(1001)), 'a']);
      assert.deepEqual([long.status, long.body.code], [413, 'content_too_large']);
      assert.deepEqual(long.body.errors, [{ pointer: '/photo', message: 'must be at most 1000 bytes long' }]);
      assert.equal((await add(['photo', png(new Uint8Array(1000)), 'a'])).status, 200);
      const pdf = new Blob([octets], { type: 'application/pdf' });
      for (const [answer, pointer, message] of [
        [await add(['photo', pdf, 'a']), '/photo', 'must be of the type image/png or text/*'],
        [await add(['photo', '0']), '/photo', 'must be a file'],
        [await add(['photo', png(), 'a'], ['title', png(), 'b']), '/title', 'must not be a file'],
      ] as const) {
        assert.deepEqual([answer.status, answer.body.code], [422, 'validation_failed']);
        assert.deepEqual(answer.body.errors, [{ pointer, message }]);
      }
      const four = form(...(['a', 'b', 'c', 'd'] as const).map((name) => ['files', png(), name] as const));
      const many = await send('POST', 'several', four);
      assert.deepEqual([many.status, many.body.code], [422, 'validation_failed']);
      const twice = await add(['photo', png(), 'a'], ['photo', png(), 'b']);
      assert.deepEqual([twice.status, twice.body.code], [400, 'content_malformed']);
    });

    test('come as multipart/form-data only', async () => {
      const json = await send('POST', 'photos/add', '{"photo":0}', { 'Content-Type': 'application/json' });
      assert.equal(json.status, 415);
      assert.equal(json.headers.get('accept-post'), 'multipart/form-data');
    });

    test('may be longer than the content of other requests, up to what the action declares', async () => {
      const large = (length: number) =>
        send('PUT', 'large', form(['file', new Blob([new Uint8Array(length)]), 'large']));
      assert.deepEqual((await large(3 * MiB)).body, { octets: 3 * MiB });
      assert.equal((await large(3 * MiB + 1)).status, 413);
      assert.equal((await large(5 * MiB)).status, 413);
    });

    test('are the same in a run that is repeated, and for an Idempotency-Key and after a 202', async () => {
      const sumOf = async (): Promise<number> =>
        Number((await server.send('GET', '/api/v1/counters/all')).json().octets);
      const before = await sumOf();
      const sent = Array.from({ length: 20 }, () => send('PUT', 'large', form(['file', png(), 'a'])));
      assert.deepEqual(new Set((await Promise.all(sent)).map(({ body }) => body.octets)), new Set([7]));
      assert.equal(await sumOf(), before + 140);
      const [content, type] = raw('name="photo"; filename="a"', 'abc');
      const keyed = { ...type, 'Idempotency-Key': '"photo"' };
      const [one, two] = [
        await send('POST', 'photos/add', content, keyed),
        await send('POST', 'photos/add', content, keyed),
      ];
      assert.deepEqual(two.body, one.body);
      const later = await send('POST', 'photos/add', content, { ...type, Prefer: 'respond-async' });
      assert.equal(later.status, 202);
      const path = String(later.headers.get('location'));
      let operation = await server.send('GET', path);
      while (operation.status === 200) operation = await server.send('GET', path);
      const result = (await server.send('GET', String(operation.headers.location))).json();
      assert.equal((await server.send('GET', `/api/v1/photos/${result.id}`)).json().octets, '616263');
    });

    test('are described in the OpenAPI document', async () => {
      const { paths } = (await server.send('GET', '/openapi.json')).json() as {
        paths: Record<string, Record<string, { requestBody: { content: Record<string, unknown> } }>>;
      };
      const content = paths['/api/v1/photos/add']?.post?.requestBody.content;
      const binary = { type: 'string', format: 'binary' };
      assert.deepEqual(content, {
        'multipart/form-data': {
          schema: {
            type: 'object',
            required: ['photo'],
            properties: { photo: binary, second: binary, title: { type: 'string' } },
            additionalProperties: false,
          },
          encoding: { photo: { contentType: 'image/png, text/*' } },
        },
      });
      const several = paths['/api/v1/several']?.post?.requestBody.content;
      assert.match(JSON.stringify(several), /"items":\{"type":"string","format":"binary"\}/);
    });
  });
}

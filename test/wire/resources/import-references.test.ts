/** Imports whose columns are named by the request, and whose references are found by unique keys (§4.19.13, §4.19.14), on both stores. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const config = fileURLToPath(new URL('../fixtures/goods.config.ts', import.meta.url));
const password = 'correct horse battery';

type Sent = { readonly type?: string; readonly query?: string; readonly token?: string };
type Fault = {
  readonly line: number;
  readonly column?: number;
  readonly member?: string;
  readonly message: string;
};

describeOnEachStore('an import', (engine) => {
  const start = serversOn(engine, config);
  let program: RunningServer;
  let maker: string;
  let shelf: string;
  let seller: string;
  let sellerToken: string;

  const make = async (path: string, json: object, token?: string): Promise<string> => {
    const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    const made = await program.send('POST', `/api/v1/${path}`, {
      json,
      headers,
      anonymous: token !== undefined,
    });
    assert.equal(made.status, 201, made.body);
    return made.json().id ?? made.json().user.id;
  };
  const login = async (email: string): Promise<string> =>
    (await program.send('POST', '/api/v1/auth/login', { json: { email, password }, anonymous: true })).json()
      .token;

  before(async () => {
    program = await start({ COMITY_FILES_URL: pathToFileURL(temporaryFolder()).href });
    maker = await make('makers', { slug: 'acme', number: 7, name: 'Acme', secret: 's3' });
    await make('makers', { slug: 'closed' });
    shelf = await make('shelves', { tenantId: 'north', code: 'A1' });
    await make('shelves', { tenantId: 'south', code: 'A1' });
    await make('vaults', { code: 'V1' });
    seller = await make('auth/register', { email: 'sue@goods.example', password }, '');
    await program.send('PATCH', `/api/v1/users/${seller}`, { json: { tenant: 'north' } });
    sellerToken = await login('sue@goods.example');
  });

  const send = (body: string, { type = 'text/csv', query = '', token }: Sent = {}) =>
    program.send('POST', `/api/v1/goods/import${query}`, {
      body,
      anonymous: token !== undefined,
      headers: { 'Content-Type': type, ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }) },
    });
  const taken = async (body: string, sent: Sent = {}) => {
    const answer = await send(body, sent);
    assert.equal(answer.status, 200, answer.body);
    return answer.json();
  };
  const good = async (name: string) => {
    const { items } = (await program.send('GET', `/api/v1/goods?name=${name}`)).json();
    const { id: _, createdAt: __, updatedAt: ___, name: ____, ...fields } = items[0] ?? {};
    return fields;
  };
  const places = (errors: readonly Fault[]) =>
    errors.map(({ line, column, member }) => [line, column, member].filter((each) => each !== undefined));

  test('finds references by a unique key, in CSV and in JSON', async () => {
    const rows = [
      'name,makerId.slug,shelfId.code,shelfId.tenantId,sellerId.email',
      'by-slug,acme,A1,north,sue@goods.example',
      'by-none,,,,',
    ];
    assert.deepEqual(await taken(rows.join('\n')), {
      created: 2,
      updated: 0,
      unchanged: 0,
      refused: 0,
      errors: [],
    });
    assert.deepEqual(await good('by-slug'), {
      makerId: maker,
      shelfId: shelf,
      sellerId: seller,
      madeBy: 'acme',
    });
    assert.deepEqual(await good('by-none'), { makerId: null });
    await taken('name,/makerId/number\nby-number,7');
    await taken('name,makerId.name\nby-name,aCME');
    await taken(`name,makerId.id\nby-id,${maker}`);
    await taken('[{"name": "by-json", "makerId": {"slug": "acme"}}, {"name": "by-plain"}]', {
      type: 'application/json',
    });
    await taken(`{"name": "by-line", "makerId": {"number": 7}, "shelfId": "${shelf}"}`, {
      type: 'application/x-ndjson',
    });
    for (const name of ['by-number', 'by-name', 'by-id', 'by-json', 'by-line'])
      assert.equal((await good(name)).makerId, maker, name);
  });

  test('says which reference of which line names no document', async () => {
    const csv = [
      'name,makerId.slug,shelfId.tenantId,shelfId.code',
      'r1,none,,',
      'r2,acme,north,B9',
      'r3,acme,north,',
      'r4,,west,A1',
    ];
    const { created, refused, errors } = await taken(csv.join('\n'));
    assert.deepEqual([created, refused], [0, 4]);
    assert.deepEqual(places(errors), [
      [2, 2, '/makerId/slug'],
      [3, 3, '/shelfId'],
      [4, 3, '/shelfId/tenantId'],
      [5, 3, '/shelfId'],
    ]);
    const messages = errors.map(({ message }: Fault) => message);
    assert.match(messages[0], /^no document of makers has slug "none"$/);
    assert.match(messages[1], /^no document of shelves has tenantId "north" and code "B9"$/);
    assert.match(
      messages[2],
      /^names a document by its id, or in an import by id, or by tenantId with code$/,
    );
    assert.deepEqual(
      errors.map(({ code }: { code: string }) => code),
      ['reference_missing', 'reference_missing', 'validation_failed', 'reference_missing'],
    );
    const json = await taken(
      '[{"name":"r5","makerId":{"number":"7"}},\n{"name":"r6","makerId":{"colour":1}},{"name":"r7","place":{"makerId":{"slug":"acme"}}}]',
      {
        type: 'application/json',
      },
    );
    assert.deepEqual(places(json.errors), [
      [1, '/makerId/number'],
      [2, '/makerId/colour'],
      [2, '/place/makerId'],
    ]);
    assert.match(json.errors[0].message, /number of makers cannot be "7"/);
    const atomic = await send('name,makerId.slug\nr8,acme\nr9,none', { query: '?atomic=true' });
    assert.deepEqual([atomic.status, places(atomic.json().errors)], [422, [[3, 2, '/makerId/slug']]]);
    assert.deepEqual(await good('r8'), {});
  });

  test('a dry run and many records find references as a short import does', async () => {
    const rows = Array.from(
      { length: 3000 },
      (_, at) => `many-${at},${at % 7 === 0 ? 'none' : 'acme'},${'x'.repeat(40)}`,
    );
    const body = ['name,makerId.slug,note', ...rows].join('\n');
    const dry = await taken(body, { query: '?dryRun=true' });
    assert.deepEqual([dry.created, dry.refused, dry.errors.length, dry.errorsMore], [2571, 429, 100, 329]);
    assert.deepEqual(places(dry.errors.slice(0, 2)), [
      [2, 2, '/makerId/slug'],
      [9, 2, '/makerId/slug'],
    ]);
    const real = await taken(body);
    assert.deepEqual([real.created, real.refused], [2571, 429]);
    assert.equal((await good('many-2999')).makerId, maker);
  });

  test('a caller finds what it may read, by members that it sees, in its own tenant', async () => {
    const token = sellerToken;
    await taken('name,shelfId.code\nown-shelf,A1', { token });
    assert.equal((await good('own-shelf')).shelfId, shelf);
    const hidden = await send('name,makerId.secret\nx,s3', { token });
    assert.deepEqual([hidden.status, hidden.json().column], [400, 2], hidden.body);
    assert.match(
      hidden.json().error,
      /unknown column "makerId.secret": a reference is its id, or is found by id, or by slug, or by number/,
    );
    const json = await taken('{"name":"x","makerId":{"secret":"s3"}}', {
      token,
      type: 'application/x-ndjson',
    });
    assert.equal(json.errors[0].code, 'validation_failed');
    const foreign = await taken('name,vaultId.code\nx,V1', { token });
    assert.match(foreign.errors[0].message, /no document of vaults has code "V1"/);
    const other = await taken('name,shelfId.code,shelfId.tenantId\nx,A1,south', { token });
    assert.match(other.errors[0].message, /no document of shelves/);
    assert.equal((await taken('name,makerId.secret\nby-secret,s3')).created, 1, 'an administrator sees it');
  });

  test('a hook gets the id, and its refusal has the line', async () => {
    const { created, errors } = await taken('name,makerId.slug\nhook-1,closed\nhook-2,acme');
    assert.deepEqual([created, errors[0].line, errors[0].code], [1, 2, 'maker_closed']);
    assert.equal((await good('hook-2')).madeBy, 'acme');
  });

  test('takes uploads of files beside references', async () => {
    const upload = await program.send('POST', '/api/v1/uploads', {
      headers: {
        'Tus-Resumable': '1.0.0',
        'Upload-Length': '3',
        'Content-Type': 'application/offset+octet-stream',
      },
      body: 'abc',
    });
    assert.equal(upload.status, 201, upload.body);
    const id = String(upload.headers.location).split('/').at(-1);
    const cell = JSON.stringify({ upload: id }).replaceAll('"', '""');
    const answer = await taken(`name,makerId.slug,photo\npictured,acme,"${cell}"`);
    assert.deepEqual(answer.errors, []);
    const { photo, makerId } = await good('pictured');
    assert.deepEqual([photo.bytes, makerId], [3, maker]);
  });

  test('takes the members of columns from the request, and leaves columns out', async () => {
    const body = 'Title,Remark,Cost\nmapped,secret,3\n';
    assert.equal((await taken(body, { query: '?columns=name,,price' })).created, 1);
    assert.deepEqual(await good('mapped'), { price: 3 });
    const absent = { type: 'text/csv; header=absent', query: '?columns=name,,makerId.slug' };
    assert.equal((await taken('bare-1,x,acme\nbare-2,,\n', absent)).created, 2);
    assert.deepEqual(await good('bare-1'), { makerId: maker, madeBy: 'acme' });
    const faults = await taken('bare-3,x,none\n', absent);
    assert.deepEqual(places(faults.errors), [[1, 3, '/makerId/slug']]);
    assert.equal((await taken('', absent)).created, 0);
    assert.equal((await taken('name\npresent', { type: 'text/csv; header=present' })).created, 1);
    const quoted = await taken('a,b\nquoted,1', {
      query: `?columns=${encodeURIComponent('"name","price"')}`,
    });
    assert.equal(quoted.created, 1);
  });

  test('refuses columns and headers that it cannot take', async () => {
    for (const [sent, status, message] of [
      [{ type: 'text/csv; header=absent' }, 400, /header=absent needs the parameter columns/],
      [{ type: 'text/csv; header=maybe' }, 415, /takes header=present or header=absent, not "maybe"/],
      [{ query: '?columns=name,colour' }, 400, /columns: unknown column "colour"/],
      [{ query: '?columns=name,name' }, 400, /columns 1 and 2 both set \/name/],
      [{ query: '?columns=name,%22x' }, 400, /columns: name 2 begins with a quote/],
      [{ query: '?columns=name', type: 'application/json' }, 400, /columns is for text\/csv/],
      [{ query: '?columns=name' }, 400, /line 1: the header has 2 cells, and the parameter columns 1 names/],
    ] as const) {
      const refused = await send('name,price\nx,1', sent);
      assert.equal(refused.status, status, refused.body);
      assert.match(refused.json().error, message);
    }
    const unnamed = await send('name,,price\nx,,1');
    assert.deepEqual([unnamed.status, unnamed.json().column], [400, 2]);
    assert.match(unnamed.json().error, /a column has no name; the parameter columns leaves it out/);
    const both = await send('name,makerId,makerId.slug\nx,1,acme');
    assert.match(both.json().error, /columns 2 and 3 both set \/makerId/);
  });

  test('each fault of a record has a code of its own', async () => {
    const { errors } = await taken('name,price,makerId\n,x,1');
    assert.deepEqual(
      errors.map(({ column, code }: { column: number; code: string }) => [column, code]),
      [
        [1, 'field_missing'],
        [2, 'validation_failed'],
      ],
    );
  });

  test('JSON in a cell that is malformed or beyond the limits is a fault of its column', async () => {
    const deep = `${'['.repeat(200)}${']'.repeat(200)}`;
    const body = [
      'name,parts,note',
      `deep-1,${deep},`,
      `deep-2,,${deep}`,
      'deep-3,[1,',
      'deep-4,"[1,",',
      'deep-5,,"[see below"',
      'deep-6,,[see',
    ].join('\n');
    const { created, errors } = await taken(body);
    assert.deepEqual(
      errors.map(({ line, column, code }: Fault & { code: string }) => [line, column, code]),
      [
        [2, 2, 'content_malformed'],
        [3, 3, 'content_malformed'],
        [4, 2, 'content_malformed'],
        [5, 2, 'content_malformed'],
      ],
    );
    assert.match(errors[0].message, /malformed JSON: .*deep/);
    assert.equal(created, 2);
    assert.equal((await good('deep-6')).note, '[see');
  });
});

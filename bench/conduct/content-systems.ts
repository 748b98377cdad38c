/**
 * Content systems, each with a collection of notes in SQLite: the files that its generator of projects writes, as far as an API needs them, and
 * its own commands to make the tables and to start. Pages for people are not built.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { dirname, join } from 'node:path';
import {
  execute,
  fetchMsMax,
  fetchPackages,
  type Program,
  type Started,
  send,
  startOnPort,
} from './program.ts';

const secret = 'conduct-secret-0123456789-0123456789';

/** Contents by path. */
type Files = Readonly<Record<string, string | object>>;

function writeFiles(folder: string, files: Files): void {
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content, undefined, 2));
  }
}

const payloadConfig = `
import { sqliteAdapter } from '@payloadcms/db-sqlite';
import { buildConfig } from 'payload';

const open = () => true;

export default buildConfig({
  secret: process.env.PAYLOAD_SECRET ?? '',
  db: sqliteAdapter({ client: { url: process.env.DATABASE_URI ?? '' } }),
  collections: [
    { slug: 'users', auth: true, fields: [] },
    {
      slug: 'notes',
      access: { read: open, create: open, update: open, delete: open },
      fields: [
        { name: 'title', type: 'text', required: true },
        { name: 'done', type: 'checkbox' },
      ],
    },
  ],
});
`;

const payloadRoute = `
import config from '@payload-config';
import { REST_DELETE, REST_GET, REST_OPTIONS, REST_PATCH, REST_POST, REST_PUT } from '@payloadcms/next/routes';

export const GET = REST_GET(config);
export const POST = REST_POST(config);
export const DELETE = REST_DELETE(config);
export const PATCH = REST_PATCH(config);
export const PUT = REST_PUT(config);
export const OPTIONS = REST_OPTIONS(config);
`;

const payloadFiles: Files = {
  'package.json': { type: 'module' },
  'src/payload.config.ts': payloadConfig,
  'src/app/(payload)/api/[...slug]/route.ts': payloadRoute,
  'src/app/(payload)/layout.tsx':
    'export default ({ children }: { children: React.ReactNode }) => children;\n',
  'next.config.mjs': `
import { withPayload } from '@payloadcms/next/withPayload';

export default withPayload({});
`,
  'tsconfig.json': {
    compilerOptions: {
      ...{ target: 'ES2022', lib: ['DOM', 'ES2022'], module: 'esnext', moduleResolution: 'bundler' },
      ...{ jsx: 'react-jsx', strict: true, noEmit: true, skipLibCheck: true, esModuleInterop: true },
      paths: { '@payload-config': ['./src/payload.config.ts'] },
    },
    include: ['**/*.ts', '**/*.tsx'],
  },
};

/** Built and migrated as for production, without its admin pages. */
async function startPayload(folder: string, version: string): Promise<Started> {
  writeFiles(folder, payloadFiles);
  await fetchPackages(folder, [
    ...['payload', '@payloadcms/next', '@payloadcms/ui', '@payloadcms/db-sqlite'].map(
      (name) => `${name}@${version}`,
    ),
    ...['next@16.4.6', 'react@19.3.1', 'react-dom@19.3.1', 'graphql@16.15.0', 'typescript@7.0.2'],
    ...['@types/react@19.3.3', '@types/node@24.19.4'],
  ]);
  const settings = { PAYLOAD_SECRET: secret, DATABASE_URI: 'file:./notes.db', NEXT_TELEMETRY_DISABLED: '1' };
  const [payload, next] = ['payload/bin.js', 'next/dist/bin/next'].map((path) =>
    join(folder, 'node_modules', path),
  );
  const run = (...args: (string | undefined)[]) =>
    execute(
      process.execPath,
      args.map((each) => each ?? ''),
      { cwd: folder, env: { ...process.env, ...settings }, timeout: fetchMsMax },
    );
  await run(payload, 'migrate:create', 'notes');
  await run(payload, 'migrate');
  await run(next, 'build');
  return startOnPort(process.execPath, [next ?? '', 'start', '-H', '127.0.0.1'], {
    folder,
    settingsOf: (port) => ({ ...settings, PORT: String(port) }),
  });
}

export const payload: Program = {
  name: 'Payload',
  version: '3.90.2',
  collection: '/api/notes',
  file: 'content-systems.ts',
  start: (folder) => startPayload(folder, payload.version),
};

const strapiCore = (kind: 'Router' | 'Service' | 'Controller'): string =>
  `module.exports = require('@strapi/strapi').factories.createCore${kind}('api::note.note');\n`;

/** The permissions that an administrator gives in its panel. */
const strapiBootstrap = `
module.exports = {
  async bootstrap({ strapi }) {
    const role = await strapi.query('plugin::users-permissions.role').findOne({ where: { type: 'public' } });
    for (const name of ['find', 'findOne', 'create', 'update', 'delete'])
      await strapi
        .query('plugin::users-permissions.permission')
        .create({ data: { action: 'api::note.note.' + name, role: role.id } });
  },
};
`;

const strapiFiles: Files = {
  'package.json': { name: 'notes', strapi: { uuid: 'conduct' } },
  'config/server.js': `
module.exports = ({ env }) => ({ host: env('HOST'), port: env.int('PORT'), app: { keys: [env('SECRET')] } });
`,
  'config/admin.js': `
module.exports = ({ env }) => ({
  serveAdminPanel: false,
  auth: { secret: env('SECRET') },
  apiToken: { salt: env('SECRET') },
  transfer: { token: { salt: env('SECRET') } },
  secrets: { encryptionKey: env('SECRET') },
});
`,
  'config/database.json': {
    connection: {
      client: 'sqlite',
      connection: { filename: 'notes.db' },
      useNullAsDefault: true,
    },
  },
  'config/plugins.js': `
module.exports = ({ env }) => ({ 'users-permissions': { config: { jwtSecret: env('SECRET') } } });
`,
  'config/middlewares.js': `
module.exports = ['logger', 'errors', 'security', 'cors', 'poweredBy', 'query', 'body', 'session', 'favicon', 'public'].map(
  (name) => 'strapi::' + name,
);
`,
  'src/index.js': strapiBootstrap,
  'src/api/note/content-types/note/schema.json': {
    kind: 'collectionType',
    collectionName: 'notes',
    info: { singularName: 'note', pluralName: 'notes', displayName: 'Note' },
    options: { draftAndPublish: false },
    attributes: { title: { type: 'string', required: true }, done: { type: 'boolean' } },
  },
  'src/api/note/controllers/note.js': strapiCore('Controller'),
  'src/api/note/routes/note.js': strapiCore('Router'),
  'src/api/note/services/note.js': strapiCore('Service'),
  'public/uploads/.gitkeep': '',
  'favicon.png': '',
};

/** The binding of SQLite is compiled where none is offered for this version of Node: four minutes of one processor. */
const compileMsMax = 600_000;

export const strapi: Program = {
  name: 'Strapi',
  version: '5.54.0',
  collection: '/api/notes',
  file: 'content-systems.ts',
  target: {
    idMember: 'documentId',
    sample: { data: { title: 'note {random}', done: false } },
    change: { data: { title: 'other {random}' } },
  },
  start: async (folder) => {
    writeFiles(folder, strapiFiles);
    await fetchPackages(folder, [
      ...[`@strapi/strapi@${strapi.version}`, `@strapi/plugin-users-permissions@${strapi.version}`],
      ...['better-sqlite3@12.11.1', 'react@18.3.1', 'react-dom@18.3.1'],
      ...['react-router-dom@6.30.6', 'styled-components@6.6.0'],
    ]);
    const headers = join(import.meta.dirname, '../../node_modules', `node-${platform()}-${arch()}`);
    const path = `${dirname(process.execPath)}:${process.env.PATH}`;
    await execute('npm', ['rebuild', '--prefix', folder, 'better-sqlite3'], {
      env: { ...process.env, PATH: path, npm_config_nodedir: headers },
      timeout: compileMsMax,
    });
    return startOnPort(
      process.execPath,
      [join(folder, 'node_modules/@strapi/strapi/bin/strapi.js'), 'start'],
      {
        folder,
        settingsOf: (port) => ({
          PORT: String(port),
          HOST: '127.0.0.1',
          SECRET: secret,
          NODE_ENV: 'production',
        }),
      },
    );
  },
};

/** The Node of long-term support that its bindings compile for. */
const directusNode = `node-${platform()}-${arch()}@22.23.5`;

/** Its environment as the guide of its Docker image has it, and a collection that its API creates. */
export const directus: Program = {
  name: 'Directus',
  version: '12.4.0',
  collection: '/items/notes',
  file: 'content-systems.ts',
  target: { headers: { Authorization: `Bearer ${secret}` } },
  start: async (folder) => {
    await fetchPackages(folder, [`directus@${directus.version}`, directusNode]);
    const node = join(folder, 'node_modules', directusNode.split('@')[0] ?? '');
    const path = `${join(node, 'bin')}:${process.env.PATH}`;
    const env = { ...process.env, PATH: path, npm_config_nodedir: node };
    const rebuild = ['rebuild', '--prefix', folder, 'sqlite3', 'isolated-vm'];
    await execute('npm', rebuild, { env, timeout: compileMsMax });
    const settings = {
      ...{ SECRET: secret, DB_CLIENT: 'sqlite3', DB_FILENAME: join(folder, 'notes.db'), HOST: '127.0.0.1' },
      ...{ ADMIN_EMAIL: 'conduct@example.org', ADMIN_PASSWORD: secret, ADMIN_TOKEN: secret },
      // Its limiter by load answers 503 on a machine that does something else, too.
      ...{ TELEMETRY: 'false', LOG_LEVEL: 'warn', PRESSURE_LIMITER_ENABLED: 'false' },
    };
    const cli = join(folder, 'node_modules/directus/cli.js');
    const program = join(node, 'bin/node');
    const surroundings = { cwd: folder, env: { ...env, ...settings }, timeout: fetchMsMax };
    await execute(program, [cli, 'bootstrap'], surroundings);
    const running = await startOnPort(program, [cli, 'start'], {
      folder,
      settingsOf: (port) => ({ ...settings, PORT: String(port) }),
    });
    const fields = [
      { field: 'id', type: 'integer', schema: { is_primary_key: true, has_auto_increment: true } },
      { field: 'title', type: 'string', schema: { is_nullable: false } },
      { field: 'done', type: 'boolean' },
    ];
    const collection = { collection: 'notes', schema: {}, meta: {}, fields };
    await send(`${running.url}/collections`, collection, { headers: directus.target?.headers ?? {} });
    return running;
  },
};

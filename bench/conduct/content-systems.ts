/**
 * Content systems, each with a collection of notes in SQLite: the files that its generator of projects writes, as far as an API needs them, and
 * its own commands to make the tables and to start. Pages for people are not built.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execute, fetchMsMax, fetchPackages, type Program, type Started, startOnPort } from './program.ts';

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
  start: (folder) => startPayload(folder, payload.version),
};

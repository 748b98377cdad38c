/** The rows of scripts/import-table.ts for the program itself, which wires the rooms, and for the examples. */
import type { FolderRow } from './folder-row.ts';
import { observed, rooms, stored, values } from './import-layers.ts';

export const programRows: readonly FolderRow[] = [
  // The program.
  {
    folder: 'src/server',
    may: [...stored, ...rooms, 'src/realtime', 'src/tunnel'],
    node: 'any',
    packages: [],
  },
  {
    folder: 'src/store-tables.ts',
    may: [
      ...stored,
      'src/accounts',
      'src/kernel',
      'src/realtime',
      'src/resources',
      'src/webhooks/receiving',
      'src/work',
      'src/webhooks/sending',
    ],
    node: [],
    packages: [],
  },
  { folder: 'src/package-version.ts', may: [], node: ['node:fs', 'node:url'], packages: [] },
  {
    folder: 'src/open-store.ts',
    may: [
      ...stored,
      'src/store/sqlite',
      'src/store/postgres',
      'src/store-tables.ts',
      'src/package-version.ts',
      'src/accounts',
    ],
    node: ['node:crypto', 'node:path'],
    packages: [],
  },
  {
    folder: 'src/all-resources.ts',
    may: [...stored, ...rooms, 'src/realtime', 'src/logic', 'src/webhooks/receiving', 'src/webhooks/sending'],
    node: [],
    packages: [],
  },
  {
    folder: 'src/compose.ts',
    may: [
      ...stored,
      'src/all-resources.ts',
      'src/open-store.ts',
      ...rooms,
      'src/realtime',
      'src/tunnel',
      'src/egress',
      'src/logic',
      'src/mail',
      'src/work',
      'src/webhooks/receiving',
      'src/webhooks/sending',
      'src/server',
    ],
    node: 'any',
    packages: [],
  },
  {
    folder: 'src/create-comity.ts',
    may: [...observed, 'src/compose.ts', 'src/egress', 'src/mail', 'src/work'],
    node: ['node:http', 'node:stream'],
    packages: [],
  },
  {
    folder: 'src/testing.ts',
    may: [...observed, 'src/create-comity.ts', 'src/egress', 'src/mail', 'src/work'],
    node: ['node:crypto', 'node:fs', 'node:os', 'node:path', 'node:timers/promises'],
    packages: [],
  },
  {
    folder: 'src/index.ts',
    may: [...values, 'src/config', 'src/create-comity.ts'],
    node: [],
    packages: ['typebox'],
  },
  {
    folder: 'src/cli',
    may: [
      ...stored,
      'src/store/backup-file',
      'src/store/sqlite',
      'src/store/postgres',
      'src/store-tables.ts',
      'src/package-version.ts',
      'src/webhooks/signature',
      'src/webhooks/receiving',
      'src/webhooks/sent-headers.ts',
      'src/webhooks/sending',
      ...rooms,
      'src/server',
      'src/open-store.ts',
      'src/compose.ts',
    ],
    node: 'any',
    packages: ['commander'],
  },
  {
    folder: 'src/main.ts',
    may: ['src/cli'],
    node: ['node:module', 'node:process'],
    packages: [],
  },

  {
    folder: 'examples/receive-express',
    may: ['src/webhooks/index.ts'],
    node: ['node:http'],
    packages: ['express'],
  },
  { folder: 'examples/receive-fastify', may: ['src/webhooks/index.ts'], node: [], packages: ['fastify'] },
  {
    folder: 'examples/receive-hono',
    may: ['src/webhooks/index.ts'],
    node: [],
    packages: ['@hono/node-server', 'hono'],
  },
  // A configuration, or a program, sees what a user of the package sees.
  { folder: 'examples', may: ['src/index.ts', 'src/webhooks/index.ts'], node: 'any', packages: [] },
];

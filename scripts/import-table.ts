/**
 * What each folder of src/ may import. `scripts/checks/imports.ts` holds the code to it, and fails on a row that no
 * longer says anything. The arrows are those of ARCHITECTURE.md: change both together and say why in docs/decisions/.
 */

export type FolderRow = {
  /** Path of a folder, or of one file, relative to the root. The longest row that covers a file is its row. */
  readonly folder: string;
  /** Other rows that its files may import from. A row's own files may always import each other. */
  readonly may: readonly string[];
  /** Modules of Node that its files may import; `any` where the boundary does not matter. */
  readonly node: readonly string[] | 'any';
  /** Packages of npm that its files may import, and do. */
  readonly packages: readonly string[];
};

const http = ['src/http', 'src/http/syntax'];
const values = [...http, 'src/model'];
const observed = [...values, 'src/config', 'src/observe'];
const stored = [...observed, 'src/store'];
const rooms = [
  'src/auth',
  'src/resources',
  'src/openapi',
  'src/webhooks/signature',
  'src/webhooks/outbound',
  'src/webhooks/inbound',
  'src/connections',
];

export const importTable: readonly FolderRow[] = [
  // Values: no I/O, no clock, no Node.
  { folder: 'src/http/syntax', may: [], node: [], packages: ['negotiator', 'structured-headers'] },
  { folder: 'src/http', may: ['src/http/syntax'], node: [], packages: [] },
  { folder: 'src/model', may: ['src/http/syntax'], node: [], packages: ['typebox'] },
  { folder: 'src/webhooks/signature', may: values, node: ['node:crypto'], packages: [] },

  // What every room may lean on.
  {
    folder: 'src/config',
    may: values,
    node: ['node:fs', 'node:fs/promises', 'node:net', 'node:path', 'node:url', 'node:util'],
    packages: ['typebox'],
  },
  {
    folder: 'src/observe',
    may: [...values, 'src/config'],
    node: ['node:async_hooks', 'node:os', 'node:perf_hooks', 'node:process'],
    packages: ['pino', 'prom-client'],
  },
  { folder: 'src/store', may: [...values, 'src/observe'], node: [], packages: [] },
  {
    folder: 'src/egress',
    may: [...values, 'src/observe', 'src/store'],
    node: [
      'node:dns',
      'node:dns/promises',
      'node:events',
      'node:http',
      'node:https',
      'node:net',
      'node:stream',
      'node:tls',
    ],
    packages: [],
  },

  // Adapters: compose.ts alone chooses between them.
  {
    folder: 'src/store/sqlite',
    may: stored,
    node: [
      'node:crypto',
      'node:events',
      'node:fs',
      'node:fs/promises',
      'node:os',
      'node:path',
      'node:sqlite',
      'node:url',
      'node:worker_threads',
    ],
    packages: [],
  },
  {
    folder: 'src/store/postgres',
    may: stored,
    node: ['node:crypto', 'node:events', 'node:fs', 'node:fs/promises', 'node:path', 'node:url'],
    packages: [],
  },

  // Rooms: beside each other, never into each other.
  {
    folder: 'src/auth',
    may: [...stored, 'src/egress'],
    node: ['node:buffer', 'node:crypto', 'node:util'],
    packages: [],
  },
  {
    folder: 'src/resources',
    may: [...stored, 'src/egress'],
    node: ['node:buffer', 'node:crypto', 'node:stream', 'node:stream/promises', 'node:util', 'node:zlib'],
    packages: ['@fastify/busboy', 'pgsql-ast-parser', 'rfc6902', 'typebox'],
  },
  { folder: 'src/openapi', may: observed, node: [], packages: [] },
  {
    folder: 'src/webhooks/outbound',
    may: [...stored, 'src/egress', 'src/webhooks/signature'],
    node: ['node:buffer', 'node:crypto', 'node:events', 'node:stream', 'node:timers/promises', 'node:zlib'],
    packages: [],
  },
  {
    folder: 'src/webhooks/inbound',
    may: [...stored, 'src/egress', 'src/webhooks/signature'],
    node: ['node:buffer', 'node:crypto', 'node:stream'],
    packages: [],
  },
  {
    folder: 'src/connections',
    may: [...stored, 'src/egress'],
    node: [
      'node:buffer',
      'node:crypto',
      'node:dgram',
      'node:events',
      'node:http',
      'node:http2',
      'node:net',
      'node:stream',
      'node:tls',
    ],
    packages: [],
  },

  // The program.
  { folder: 'src/server', may: [...stored, 'src/egress', ...rooms], node: 'any', packages: [] },
  {
    folder: 'src/compose.ts',
    may: [...stored, 'src/egress', 'src/store/sqlite', 'src/store/postgres', ...rooms, 'src/server'],
    node: 'any',
    packages: [],
  },
  {
    folder: 'src/index.ts',
    may: [...values, 'src/config', 'src/webhooks/signature', 'src/compose.ts'],
    node: [],
    packages: ['typebox'],
  },
  {
    folder: 'src/cli',
    may: [...stored, 'src/egress', ...rooms, 'src/server', 'src/compose.ts'],
    node: 'any',
    packages: ['commander'],
  },
  { folder: 'src/main.ts', may: ['src/cli'], node: ['node:process'], packages: [] },

  // A configuration sees what a user of the package sees.
  { folder: 'examples', may: ['src/index.ts'], node: 'any', packages: [] },
];

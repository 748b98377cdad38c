/**
 * Bundles the program into dist/: the command, the entry points of the package and those of its threads, with the chunks that they share
 * (docs/decisions/0063-the-program-is-a-bundle.md). Source maps, licences of what is bundled and the viewer of /docs are beside it.
 *
 * A program that runs from dist/ loads more chunks and starts threads while it is bundled anew: a chunk is named by its content and stays
 * for a day, and files are replaced one by one, by renaming.
 *
 * Usage: node scripts/bundle.ts; scripts/setup.mjs does it when a source has changed.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { builtinModules } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Metafile, type Plugin } from 'esbuild';
import { viewerCopy, viewerModule } from '../src/openapi/docs-assets.ts';
import { listFiles, packageEntries, readText, repositoryRoot } from './source-tree.ts';

const clientEntry = 'src/client/index.ts';
const chunkKeptMs = 24 * 60 * 60 * 1000;

/** Bundles a tree laid out like the repository into its dist/. @returns the paths of the bundle */
export async function bundle(root: string): Promise<ReadonlySet<string>> {
  const output = join(root, 'dist');
  const entries = entryPoints(root);
  // A thread is one file, which takes less time to load than chunks, unless it shares them with the configuration that it imports.
  const threads = await buildCode(root, entries.threads, { splitting: false });
  const sharing = threadsOfConfigurations(root, threads.metafile);
  const program = await buildCode(root, { ...entries.program, ...sharing }, { splitting: true });
  const inProgram = new Set(program.outputFiles.map(({ path }) => path));
  const client = await bundleClient(root);
  const dashboard = await bundleDashboard(root);
  const viewer = fileURLToPath(import.meta.resolve(viewerModule));
  const licences = licencesOf(root, [
    ...Object.keys({ ...threads.metafile.inputs, ...program.metafile.inputs }),
    ...dashboard.inputs,
    relative(root, viewer),
  ]);
  const files = [
    // Chunks come first: an entry point appears when all that it imports is there.
    ...program.outputFiles.toSorted((one, other) => Number(isChunk(other.path)) - Number(isChunk(one.path))),
    ...threads.outputFiles.filter(({ path }) => !inProgram.has(path)),
    ...client,
    ...dashboard.files,
    { path: join(output, viewerCopy), contents: readFileSync(viewer) },
    { path: join(output, 'THIRD-PARTY-LICENSES'), contents: Buffer.from(licences) },
  ];
  for (const { path, contents } of files) replaceFile(path, contents);
  const current = new Set(files.map(({ path }) => path));
  for (const path of listFiles(root, 'dist').map((file) => join(root, file))) {
    const isStale = isChunk(path) && !current.has(path) && Date.now() - statSync(path).mtimeMs > chunkKeptMs;
    if (isStale) rmSync(path, { force: true });
  }
  // Compiled code of earlier chunks, which would be kept for ever: 2 MB for each change.
  removeBesideWriters(join(root, 'node_modules/.cache/comity/program'));
  return current;
}

/**
 * Removes a folder that running programs write to by its path. Under another name it gets no new files, except those of a write that had
 * already found the folder: with six writers one removal in a hundred found such a file in a folder that it had just emptied.
 */
function removeBesideWriters(folder: string): void {
  const removed = `${folder}.${process.pid}`;
  try {
    renameSync(folder, removed);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  rmSync(removed, { recursive: true, force: true, maxRetries: 5, retryDelay: 10 });
}

/** `comity/client`, for browsers too: its own file, and the chunk of live lists, which it loads when one is opened. */
async function bundleClient(root: string) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [clientEntry],
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
    outbase: join(root, 'src'),
    outdir: join(root, 'dist'),
    chunkNames: 'client/[name]-[hash]',
    minify: true,
    legalComments: 'none',
    write: false,
    logLevel: 'silent',
  });
  return outputFiles;
}

/** The web apps in dashboard/: a script and a style each, which the program serves (src/app-assets.ts). */
async function bundleDashboard(root: string) {
  const names = ['main.tsx', 'style.css', 'portal/main.tsx', 'portal/style.css'];
  const entries = names.map((name) => join(root, 'dashboard', name));
  if (!entries.every((path) => existsSync(path))) return { files: [], inputs: [] };
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: entries,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    outbase: join(root, 'dashboard'),
    outdir: join(root, 'dist/dashboard'),
    minify: true,
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'silent',
  });
  return { files: outputFiles, inputs: Object.keys(metafile.inputs) };
}

function isChunk(path: string): boolean {
  return /-[A-Z0-9]{8}\.js(?:\.map)?$/.test(path);
}

type Entries = Readonly<Record<string, string>>;

function buildCode(root: string, entryPoints: Entries, { splitting }: { readonly splitting: boolean }) {
  return build({
    absWorkingDir: root,
    entryPoints,
    bundle: true,
    splitting,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    outdir: join(root, 'dist'),
    chunkNames: '[name]-[hash]',
    minifyWhitespace: true,
    // Node prints the line of an error that a program does not catch.
    lineLimit: 160,
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    plugins: [builtinRequires, optionalPeers],
    metafile: true,
    write: false,
    logLevel: 'silent',
  });
}

/** The optional peers of the package, which a project installs itself. A package that is bundled brings what it requires. */
const optionalPeers: Plugin = {
  name: 'optional-peers',
  setup({ onResolve }) {
    onResolve({ filter: /^(?:@opentelemetry\/|sharp$)/ }, ({ kind, path }) =>
      kind === 'dynamic-import' ? { path, external: true } : undefined,
    );
  },
};

/** The command, what the package exports, and each file that is started as a thread, by the name of its file. */
function entryPoints(root: string): { readonly program: Entries; readonly threads: Entries } {
  const program: Record<string, string> = {};
  const threads: Record<string, string> = {};
  const entries = ['src/main.ts', ...Object.values(packageEntries)].filter((file) => file !== clientEntry);
  for (const file of entries) program[file.slice(4, -3)] = file;
  for (const file of listFiles(root, 'src')) {
    if (!file.endsWith('.ts')) continue;
    for (const [, thread = ''] of readText(root, file).matchAll(
      /workerFile\('([^']+)', import\.meta\.url\)/g,
    )) {
      const path = join(dirname(file), `${thread}.ts`);
      const name = basename(thread);
      const known = program[name] ?? threads[name] ?? path;
      if (known !== path) throw new Error(`${path} and ${known} have one name in the bundle`);
      if (program[name] === undefined) threads[name] = path;
    }
  }
  return { program, threads };
}

/** Those that import a configuration, by a name that they are given: its `comity` has to be their own. */
function threadsOfConfigurations(root: string, { outputs }: Metafile): Entries {
  const found: Record<string, string> = {};
  for (const { entryPoint, inputs } of Object.values(outputs)) {
    const importsByName = Object.keys(inputs).some(
      (file) => file.startsWith('src/') && /\bimport\([^')]/.test(readText(root, file)),
    );
    if (entryPoint !== undefined && importsByName) found[basename(entryPoint, '.ts')] = entryPoint;
  }
  return found;
}

/** CommonJS packages require modules of Node, which ES modules cannot. Loaded when it is required, as in the package itself. */
const builtinRequires: Plugin = {
  name: 'builtin-requires',
  setup({ onResolve, onLoad }) {
    const filter = new RegExp(`^(node:.*|${builtinModules.join('|')})$`);
    onResolve({ filter }, ({ path, kind }) => {
      return kind === 'require-call' || path === 'node:http' ? { path, namespace: 'builtin' } : undefined;
    });
    onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => {
      return { contents: `module.exports = process.getBuiltinModule('${path}')`, loader: 'js' };
    });
  },
};

/** The names, versions and licences of the packages that the files belong to, as their terms ask. */
function licencesOf(root: string, files: readonly string[]): string {
  const folders = new Set(
    files.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []),
  );
  const texts = [...folders].sort().map((folder) => licenceOf(join(root, folder)));
  return `The programs in this folder contain code of these packages.\n\n${texts.join('\n')}`;
}

function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const files = readdirSync(folder).filter((each) => /^(?:licen[cs]e|copying|notice)/i.test(each));
  const texts = files.map((file) => `\n${readFileSync(join(folder, file), 'utf8').trim()}\n`);
  return `-- ${name} ${version} (${license})\n${texts.join('')}`;
}

function replaceFile(path: string, contents: Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  const next = `${path}.${process.pid}`;
  writeFileSync(next, contents);
  renameSync(next, path);
}

if (import.meta.main) {
  await bundle(repositoryRoot).catch(({ message }: Error) => {
    console.error(message);
    process.exitCode = 1;
  });
}

/**
 * `comity init`: writes a project that runs as it is. How it gets at Comity depends on how this program was installed: run
 * from a checkout, the project depends on that folder, which is where Comity is on this machine; installed from a
 * registry, it asks for the same version there.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CommandFailure, exitCodes } from './failure.ts';
import { starterFiles } from './starter.ts';
import type { Terminal } from './terminal.ts';

type Manifest = { readonly version: string };

/**
 * @param folder where to write, made when missing; no file in it is ever overwritten
 * @param node `npm` or `system`; undefined: as this program was run itself
 */
export async function init(terminal: Terminal, folder: string, node: string | undefined): Promise<number> {
  if (node !== undefined && node !== 'npm' && node !== 'system') {
    throw new CommandFailure(`--node must be npm or system, not "${node}"`, { exitCode: exitCodes.usage });
  }
  const root = resolve(fileURLToPath(new URL('../..', import.meta.url)));
  const manifest: Manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const brought = node === undefined ? isInstalledByNpm(process.execPath) : node === 'npm';
  const target = resolve(folder);
  const files = starterFiles({
    name: projectName(basename(target)),
    comity: isInstalledByNpm(root) ? `^${manifest.version}` : `file:${root.replaceAll(sep, '/')}`,
    bringsNode: brought,
  });
  refuseToOverwrite(target, [...files.keys()]);
  if (!isInstalledByNpm(root)) buildPackage(terminal, root);
  mkdirSync(target, { recursive: true });
  // `wx` fails on a file that came between the check and now.
  for (const [path, text] of files) writeFileSync(join(target, path), text, { flag: 'wx' });
  terminal.out(nextSteps(folder, [...files.keys()]));
  return exitCodes.done;
}

function refuseToOverwrite(target: string, paths: readonly string[]): void {
  if (existsSync(target) && !statSync(target).isDirectory()) {
    throw new CommandFailure(`${target} is a file; name a folder`);
  }
  const there = paths.filter((path) => existsSync(join(target, path)));
  if (there.length > 0) {
    throw new CommandFailure(
      `${target} has ${there.join(', ')} already; nothing was written, name another folder`,
    );
  }
}

/** True below node_modules, where npm puts what comes from a registry; a linked checkout has its own path. */
function isInstalledByNpm(path: string): boolean {
  return path.split(sep).includes('node_modules');
}

/** A checkout serves its projects from dist/, which is made when it is missing or older than what it is made from. */
function buildPackage(terminal: Terminal, root: string): void {
  const built = join(root, 'dist/main.js');
  const script = join(root, 'scripts/build.ts');
  if (!existsSync(script)) return;
  const sources = globSync('src/**/*.ts', { cwd: root }).map((path) => statSync(join(root, path)).mtimeMs);
  if (existsSync(built) && statSync(built).mtimeMs >= Math.max(...sources)) return;
  terminal.out('Building Comity from its checkout ...');
  const { status } = spawnSync(process.execPath, [script], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) throw new CommandFailure('the checkout that this program runs from could not be built');
}

/** Lower case, and nothing that npm would refuse. */
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
    'npm start',
  ];
  return [
    `Wrote ${paths.join(', ')}.`,
    '',
    'Next:',
    '',
    ...steps.map((step) => `  ${step}`),
    '',
    'Then change comity.config.ts and start again.',
  ].join('\n');
}

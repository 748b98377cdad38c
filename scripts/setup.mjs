/**
 * Installs what is missing and bundles the program if a source has changed, so that every npm script works as the first
 * command on a machine with Node >= 20 and npm, and runs what the sources say.
 *
 * Runs on plain Node 20 with nothing installed: no package and no TypeScript here. When all is in place it reads three
 * small files, looks at the times of the sources, prints nothing and exits (10 ms beside Node's own start).
 * It never changes package.json or package-lock.json.
 *
 * Usage: node scripts/setup.mjs
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSetupLock } from './setup-lock.mjs';

const setupNodeMajorMin = 20;
const programNodeMin = [24, 7];
const installMinutesMax = 20;
const outputCharactersMax = 4000;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, 'node_modules');
const marker = join(modules, '.comity-setup');
const ownNode = join(modules, '.bin', 'node');
const bundled = join(root, 'dist', '.bundled');
/** What the bundle is made from and by, beside the packages of the lockfile. */
const bundleSources = ['src', 'conduct', 'dashboard', 'scripts/bundle.ts', 'scripts/source-tree.ts'];

/** A failure whose message is all that the reader needs: printed without a stack. */
class SetupFailure extends Error {}

try {
  if (!isSetUp() || !isBundled()) await setUp();
} catch (error) {
  console.error(error instanceof SetupFailure ? error.message : error);
  process.exitCode = 1;
}

/** The quick answer: the same lockfile and the same Node binary as when the last set-up ended well. */
function isSetUp() {
  const done = readJson(marker);
  return done !== undefined && done.lockfile === lockfileHash() && done.node === nodeStamp();
}

async function setUp() {
  if (Number.parseInt(process.versions.node, 10) < setupNodeMajorMin) {
    throw new SetupFailure(
      `Comity needs Node ${setupNodeMajorMin} or newer to set itself up, and this is ${process.version}.\n` +
        `Install a newer Node and run the command again; the Node that Comity runs on then comes from npm.`,
    );
  }
  await withSetupLock(join(root, '.comity-setup.lock'), async () => {
    if (!isSetUp()) {
      if (!isInstalled()) await install();
      provideNode();
      replaceFile(marker, `${JSON.stringify({ lockfile: lockfileHash(), node: nodeStamp() })}\n`);
    }
    if (!isBundled()) await bundle();
  });
}

/** The same sources and packages as when the bundle was made. A source that is touched counts as changed. */
function isBundled() {
  try {
    return readFileSync(bundled, 'utf8') === sourcesStamp();
  } catch {
    return false; // There is no bundle.
  }
}

async function bundle() {
  // What changes while the bundle is made is noticed next time.
  const stamp = sourcesStamp();
  const result = await run(ownNode, ['scripts/bundle.ts'], root);
  if (result.code !== 0) throw new SetupFailure(`The program could not be bundled.\n${result.output.trim()}`);
  replaceFile(bundled, stamp);
}

function sourcesStamp() {
  const hash = createHash('sha256').update(`${root}\n${lockfileHash()}\n`);
  const note = (path) => {
    const stats = statSync(join(root, path), { throwIfNoEntry: false });
    if (stats === undefined) return;
    if (!stats.isDirectory()) return void hash.update(`${path} ${stats.size} ${stats.mtimeMs}\n`);
    for (const name of readdirSync(join(root, path)).sort()) note(`${path}/${name}`);
  };
  bundleSources.forEach(note);
  return hash.digest('hex');
}

function replaceFile(path, text) {
  const next = `${path}.${process.pid}`;
  writeFileSync(next, text);
  renameSync(next, path);
}

/** True when node_modules already holds what the lockfile asks for, by whatever installed it. */
function isInstalled() {
  const installed = readJson(join(modules, '.package-lock.json'))?.packages;
  if (installed === undefined) return false;
  const wanted = readJson(join(root, 'package-lock.json'))?.packages ?? {};
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === '') continue;
    const found = installed[path];
    // npm leaves an optional package out when it is for another platform.
    if (found === undefined && entry.optional === true) continue;
    if (found === undefined || found.version !== entry.version || found.integrity !== entry.integrity)
      return false;
    if (!existsSync(join(root, path, 'package.json'))) return false;
  }
  return true;
}

async function install() {
  console.error('Installing dependencies with npm; the first time takes about a minute ...');
  // The Node that npm runs on here may be older than the one that the package asks for: that one comes with it.
  const options = ['--include=dev', '--no-engine-strict', '--no-audit', '--no-fund', '--no-progress'];
  let result = await runNpm(['ci', ...options]);
  // A mirror that lacks packages of other platforms makes "npm ci" refuse a lockfile that can well be installed.
  if (result.code !== 0 && /npm (error|ERR!) code EUSAGE/.test(result.output)) {
    result = await runNpm(['install', '--no-save', ...options]);
  }
  if (result.code !== 0) throw new SetupFailure(explain(result.output));
}

function explain(output) {
  const unreachable =
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EIDLETIMEOUT|ERR_SOCKET_TIMEOUT/;
  const advice = unreachable.test(output)
    ? 'The npm registry could not be reached. Check the network and the proxy or mirror that npm is set to use\n' +
      '("npm config get registry", "npm config get proxy"), then run the command again.'
    : 'npm could not install the dependencies; its own words are above. Once that is mended, run the command again.';
  return `${output.trim().slice(-outputCharactersMax)}\n\n${advice}`;
}

/**
 * Sees to it that node_modules/.bin/node is there, runs, and is recent enough for the program. It comes with the packages: the lockfile
 * pins one for each platform (scripts/node/package.json), and npm installs and links the one that fits.
 */
function provideNode() {
  if (isRecent(ownNode)) return;
  // No build of Node for this platform on npm: the system's own serves when it is recent enough.
  if (isRecent(outsideNode())) return linkNode(outsideNode());
  throw new SetupFailure(
    `Comity runs on Node ${programNodeMin.join('.')} or newer. The npm package "node" brings one, but it could not be\n` +
      `installed for ${process.platform}-${process.arch}, and the Node of this machine is ${process.version}.\n` +
      `Install Node ${programNodeMin.join('.')} or newer and run the command again.`,
  );
}

function linkNode(target) {
  rmSync(ownNode, { force: true });
  symlinkSync(target, ownNode);
}

function isRecent(path) {
  const answer = spawnSync(path, ['--version'], { encoding: 'utf8' });
  const version = /^v(\d+)\.(\d+)\./.exec(answer.stdout ?? '');
  if (version === null) return false;
  const [major, minor] = [Number(version[1]), Number(version[2])];
  return major > programNodeMin[0] || (major === programNodeMin[0] && minor >= programNodeMin[1]);
}

/** A mark of one binary, got without running it. */
function nodeStamp() {
  try {
    const { size, mtimeMs } = statSync(ownNode);
    return `${size}-${mtimeMs}`;
  } catch {
    return 'missing';
  }
}

function runNpm(args) {
  const cli = process.env.npm_execpath ?? '';
  return cli.endsWith('npm-cli.js') ? run(outsideNode(), [cli, ...args], root) : run('npm', args, root);
}

/** Runs a command to its end and returns its exit code and all that it said. Its bound is `installMinutesMax`. */
function run(command, args, cwd) {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, PATH: outsidePath().join(delimiter) },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: installMinutesMax * 60_000,
    });
    const end = () => child.kill();
    process.once('exit', end); // A set-up that is interrupted leaves no npm behind that still writes.
    const keep = (chunk) => {
      output += chunk;
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', (error) => resolve({ code: 1, output: `${output}${command}: ${error.message}` }));
    child.once('close', (code) => {
      process.off('exit', end);
      resolve({ code: code ?? 1, output });
    });
  });
}

/** A Node that npm does not replace while it runs: never the one inside node_modules, if there is another. */
function outsideNode() {
  const known = [process.env.npm_node_execpath, process.execPath];
  const onPath = outsidePath().map((folder) => join(folder, 'node'));
  return [...known, ...onPath].find((path) => path && isOutside(path)) ?? process.execPath;
}

function isOutside(path) {
  try {
    return !realpathSync(path).startsWith(realpathSync(root) + sep);
  } catch {
    return false; // Not there at all.
  }
}

function outsidePath() {
  const bin = join(modules, '.bin');
  return (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== bin);
}

function lockfileHash() {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined; // Missing or half written: the same as not installed.
  }
}

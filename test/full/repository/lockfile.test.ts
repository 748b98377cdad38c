import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findLockfileProblems } from '../../../scripts/checks/lockfile.ts';
import type { LockedPackage } from '../../../scripts/complete-lockfile.ts';
import { completeLockfile, findMissingPackages } from '../../../scripts/complete-lockfile.ts';
import { assertNoProblems, makeTree } from '../../repository/fixture-tree.ts';

const manifest = { dependencies: { a: '1.0.0' }, devDependencies: { d: '2.0.0' } };
const packages: Record<string, LockedPackage> = {
  '': manifest,
  'node_modules/a': { version: '1.0.0', dependencies: { b: '^1.0.0' } },
  'node_modules/a/node_modules/b': { version: '1.2.0', dependencies: { c: '^3.0.0' } },
  'node_modules/c': { version: '3.1.0' },
  'node_modules/d': { version: '2.0.0', dev: true },
};

const treeOf = (locked: Record<string, LockedPackage>, wanted: object = manifest) => ({
  'package.json': JSON.stringify(wanted),
  'package-lock.json': JSON.stringify({ packages: locked }),
});

test('a sound lockfile is left alone, also where a package is locked above its parent', (t) => {
  assertNoProblems(findLockfileProblems(makeTree(t, treeOf(packages))));
});

test('finds a lockfile that does not agree with package.json', (t) => {
  const root = makeTree(t, treeOf(packages, { ...manifest, dependencies: { a: '1.0.1' } }));
  const message = 'The dependencies differ from package.json: run npm install';
  assert.deepEqual(findLockfileProblems(root), [{ file: 'package-lock.json', message }]);
});

test('finds the host that a package was fetched from', (t) => {
  const resolved = { ...packages['node_modules/c'], resolved: 'https://example.com/c-3.1.0.tgz' };
  const root = makeTree(t, treeOf({ ...packages, 'node_modules/c': resolved }));
  const message = 'node_modules/c names the host of a registry: remove its member resolved';
  assert.deepEqual(findLockfileProblems(root), [{ file: 'package-lock.json', message }]);
});

test('finds packages that are named and not locked', (t) => {
  const { 'node_modules/c': _, ...others } = packages;
  const message = 'c, which node_modules/a/node_modules/b requires, is missing: run npm run lockfile';
  assert.deepEqual(findLockfileProblems(makeTree(t, treeOf(others))), [
    { file: 'package-lock.json', message },
  ]);
});

const withBinaries = {
  ...packages,
  'node_modules/d': {
    version: '2.0.0',
    dev: true,
    optionalDependencies: {
      '@d/bin-linux-arm-musleabihf': '2.0.0',
      '@d/darwin-arm64': '2.0.0',
      'd-windows-x64': '2.0.0',
    },
  },
};

test('completes the optional packages of other platforms from their names', () => {
  const completed = completeLockfile({ packages: withBinaries });
  assert.deepEqual(findMissingPackages(completed), []);
  const added = { version: '2.0.0', dev: true, optional: true };
  assert.deepEqual(completed.packages['node_modules/@d/bin-linux-arm-musleabihf'], {
    ...added,
    os: ['linux'],
    cpu: ['arm'],
    libc: ['musl'],
  });
  assert.deepEqual(completed.packages['node_modules/@d/darwin-arm64'], {
    ...added,
    os: ['darwin'],
    cpu: ['arm64'],
  });
  assert.deepEqual(completed.packages['node_modules/d-windows-x64'], {
    ...added,
    os: ['win32'],
    cpu: ['x64'],
  });
});

test('does not guess a version, a platform, or a package that is not optional', () => {
  const needing = (entry: LockedPackage) => ({ packages: { '': {}, 'node_modules/d': entry } });
  const faults: readonly LockedPackage[] = [
    { optionalDependencies: { 'd-linux-x64': '^2.0.0' } },
    { optionalDependencies: { 'd-native': '2.0.0' } },
    { dependencies: { 'd-linux-x64': '2.0.0' } },
  ];
  for (const fault of faults)
    assert.throws(() => completeLockfile(needing(fault)), /run npm install instead/);
});

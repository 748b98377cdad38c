/** Which test files a run has, and what of its environment they see. */
import { availableParallelism } from 'node:os';
import { relative, resolve } from 'node:path';
import { listFiles, repositoryRoot } from '../source-tree.ts';

/**
 * Two more than there are cores, since tests wait for databases, for programs that start and for timers: with one more, two cores were idle
 * for a tenth of the time. With three more no core was ever idle, but every test took three times as long and some reached their timeouts.
 */
export const processes: number = availableParallelism() + 2;

/**
 * Every test file below `paths`; without paths those of the default tier, with `full` those of test/full too, and with `soak`
 * those of test/soak alone. Those of the repository come first: they are quick, and what they find often explains the rest.
 */
export function selectFiles(
  paths: readonly string[],
  { full, soak }: { readonly full: boolean; readonly soak: boolean },
): readonly string[] {
  const wanted = paths.map(pathOf);
  const isWanted = (file: string): boolean => {
    if (wanted.length > 0) return wanted.some((path) => isBelow(file, path));
    if (soak || isBelow(file, 'test/soak')) return soak && isBelow(file, 'test/soak');
    return full || !isBelow(file, 'test/full');
  };
  const found = listFiles(repositoryRoot, 'test').filter(
    (file) => file.endsWith('.test.ts') && isWanted(file),
  );
  const isCheck = (file: string): boolean => isBelow(file, 'test/repository');
  return [...found.filter(isCheck), ...found.filter((file) => !isCheck(file))];
}

/** Whether the file has a process of its own: most of these start many, or load what no other needs. */
export function isAlone(file: string): boolean {
  return isBelow(pathOf(file), 'test/full') || isBelow(pathOf(file), 'test/soak');
}

/** Whether the file runs last, with no other beside it: it judges how fast a program answers, or what a request costs. */
export function isMeasured(file: string): boolean {
  return isBelow(pathOf(file), 'test/full/measured');
}

/** A test starts from the defaults, whatever the shell that it runs in has set for its own server. */
export function forgetConfiguration(): void {
  for (const name of Object.keys(process.env)) {
    if (name.startsWith('COMITY_') && !/^COMITY_(FUZZ|SOAK|TEST)(_|$)/.test(name)) delete process.env[name];
  }
  // Without compiled code kept, types are stripped again in each process that the tests start.
  process.env.NODE_COMPILE_CACHE ??= resolve(repositoryRoot, 'node_modules/.cache/comity');
}

function pathOf(path: string): string {
  return relative(repositoryRoot, resolve(path)).replaceAll('\\', '/');
}

function isBelow(file: string, folder: string): boolean {
  return file === folder || file.startsWith(`${folder}/`);
}

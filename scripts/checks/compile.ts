/**
 * The compiler accepts every project of the repository. The pure folders are compiled a second time, without the
 * types of Node and of browsers, so that they cannot even name one; the build is compiled as it will be published.
 *
 * Usage: node scripts/checks/compile.ts
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

const projects = [
  'tsconfig.json',
  'tsconfig.pure.json',
  'tsconfig.build.json',
  // With the types of browsers, and without those of Node.
  'tsconfig.client.json',
  'dashboard/tsconfig.json',
  'examples/live-page/tsconfig.json',
  // Its declaration of the schemas of a project would apply to all programs of tsconfig.json.
  'test/typing/schemas/tsconfig.json',
] as const;

const outputBytesMax = 16 * 1024 * 1024;

/** Compiles each project that is there, emitting nothing, and returns what the compiler says. */
export async function findTypeProblems(root: string): Promise<readonly Problem[]> {
  const found = new Map<string, Problem>();
  const present = projects.filter((project) => existsSync(join(root, project)));
  const outputs = await Promise.all(present.map((project) => compile(root, project)));
  for (const problem of outputs.flat()) {
    // The projects overlap: the same sentence at the same place is reported once.
    const key = `${problem.file}:${problem.line}:${problem.message}`;
    if (!found.has(key)) found.set(key, problem);
  }
  return [...found.values()];
}

function compile(root: string, project: string): Promise<readonly Problem[]> {
  const compiler = join(repositoryRoot, 'node_modules/typescript/bin/tsc');
  const args = [
    compiler,
    '--project',
    project,
    '--noEmit',
    '--pretty',
    'false',
    // The projects run beside each other. With the usual four checkers, each judges again what they share: 48 s of processor time, not 24.
    '--checkers',
    '1',
    ...sinceLastTime(root, project),
  ];
  // It keeps most of what it allocates: with the garbage collected at Go's usual rate it took 17 s of processor time instead of 13.
  const env = { ...process.env, GOGC: '400' };
  const options = { cwd: root, env, maxBuffer: outputBytesMax };
  return new Promise((resolve) => {
    execFile(process.execPath, args, options, (error, stdout, stderr) => {
      const problems = readDiagnostics(project, stdout);
      if (error !== null && problems.length === 0) {
        problems.push({ file: project, message: `tsc failed: ${stderr || stdout || error.message}` });
      }
      resolve(problems);
    });
  });
}

/** What the compiler found of this repository is kept: judging the same sources again took 2 s of processor time instead of 19. */
function sinceLastTime(root: string, project: string): readonly string[] {
  if (root !== repositoryRoot) return [];
  const file = join(root, 'node_modules/.cache/types', `${project.replaceAll('/', '-')}.tsbuildinfo`);
  return ['--incremental', '--tsBuildInfoFile', file];
}

const located = /^(.+?)\((\d+),\d+\): error (TS\d+: .*)$/;
const unlocated = /^error (TS\d+: .*)$/;

function readDiagnostics(project: string, output: string): Problem[] {
  const problems: Problem[] = [];
  for (const line of output.split('\n')) {
    const [, file, at, message] = located.exec(line) ?? [];
    if (file !== undefined) {
      problems.push({ file, line: Number(at), message: message ?? '' });
      continue;
    }
    const whole = unlocated.exec(line)?.[1];
    if (whole !== undefined) problems.push({ file: project, message: whole });
  }
  return problems;
}

if (import.meta.main) await runAlone(findTypeProblems);

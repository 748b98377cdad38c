/**
 * Biome finds nothing to say: its rules (biome.json) hold, and every file is formatted as it would format it.
 * Warnings count; `npm run format` mends what can be mended without a thought.
 *
 * Usage: node scripts/checks/lint.ts
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { repositoryRoot } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

const outputBytesMax = 16 * 1024 * 1024;

/** Runs `biome ci` on the tree and returns what it reports. */
export function findLintProblems(root: string): Promise<readonly Problem[]> {
  const biome = join(repositoryRoot, 'node_modules/@biomejs/biome/bin/biome');
  const reporting = ['--reporter=concise', '--colors=off', '--max-diagnostics=none'];
  const args = [biome, 'ci', ...reporting, '--diagnostic-level=warn', '--error-on-warnings'];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: root, maxBuffer: outputBytesMax }, (error, stdout, stderr) => {
      const problems = readReport(`${stdout}\n${stderr}`);
      if (error !== null && problems.length === 0) {
        problems.push({ file: 'biome.json', message: `biome failed: ${stderr || stdout || error.message}` });
      }
      resolve(problems);
    });
  });
}

// "× src/a.ts:8:34: lint/style/useConst: Use const." and "× src/a.ts: format: File content differs ..."
const reported = /^[^\w\s] (.+?):(?:(\d+):\d+:)? ([\w/]+: .*)$/;

function readReport(output: string): Problem[] {
  const problems: Problem[] = [];
  for (const text of output.split('\n')) {
    const [, file, line, message] = reported.exec(text) ?? [];
    if (file === undefined || message === undefined) continue;
    problems.push({ file, ...(line === undefined ? {} : { line: Number(line) }), message });
  }
  return problems;
}

if (import.meta.main) await runAlone(findLintProblems);

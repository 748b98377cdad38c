/**
 * One shell, fed block by block as a reader would paste them, so that a variable set in one block is there in the next. Of
 * the commands of the page, `npx comity`, `comity` and the package are those of this repository, `node` is the one that runs
 * the tests, and `curl` is curl.ts unless the machine's is asked for.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { programFile } from '../../harness/command-line.ts';
import { linkPackage, temporaryFolder } from '../../harness/temporary-folder.ts';

/** A block that takes longer is taken for stuck. */
const blockBoundMs = 30_000;

export type SessionOptions = {
  /** The shell: `bash`, `sh`. */
  readonly shell: string;
  /** Whether `curl` is the machine's own. */
  readonly realCurl: boolean;
  readonly environment: Readonly<Record<string, string>>;
};

export type ShellSession = {
  /** Runs the block to its end and returns what it printed. */
  run(block: string): Promise<{ readonly stdout: string; readonly stderr: string }>;
  end(): Promise<void>;
};

/** Whether the machine has that command and it runs. */
export function isInstalled(command: string): boolean {
  return spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
}

export function openShell(options: SessionOptions): ShellSession {
  const folder = temporaryFolder();
  const work = join(folder, 'work');
  mkdirSync(work);
  writeCommands(folder, options.realCurl);
  linkPackage(work);
  const child = spawn(options.shell, [], {
    cwd: work,
    env: { PATH: `${folder}:${process.env.PATH}`, HOME: work, ...options.environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  let said = '';
  let count = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  return {
    async run(block) {
      count += 1;
      const at = (suffix: string) => join(folder, `${count}.${suffix}`);
      const mark = `block ${count} is over`;
      writeFileSync(at('sh'), block);
      child.stdin.write(`. '${at('sh')}' >'${at('out')}' 2>'${at('err')}'; echo '${mark}'\n`);
      const timer = setTimeout(() => child.kill('SIGKILL'), blockBoundMs);
      while (!said.includes(mark)) {
        const [more] = await Promise.race([once(child.stdout, 'data'), ended.then(() => [undefined])]);
        if (more === undefined && !said.includes(mark)) throw new Error(`the shell ended in:\n${block}`);
      }
      clearTimeout(timer);
      return { stdout: readFileSync(at('out'), 'utf8'), stderr: readFileSync(at('err'), 'utf8') };
    },
    async end() {
      child.stdin.end();
      await ended;
    },
  };
}

function writeCommands(folder: string, realCurl: boolean): void {
  const commands: Record<string, string> = {
    node: `exec '${process.execPath}' "$@"\n`,
    // As `node_modules/.bin/comity`, which npm puts there.
    comity: `exec '${process.execPath}' '${programFile()}' "$@"\n`,
    npx: `[ "$1" = comity ] || exit 127\nshift\nexec '${process.execPath}' '${programFile()}' "$@"\n`,
    ...(realCurl
      ? {}
      : { curl: `exec '${process.execPath}' '${resolve('test/full/guides/curl.ts')}' "$@"\n` }),
  };
  for (const [name, text] of Object.entries(commands)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}`);
    chmodSync(join(folder, name), 0o755);
  }
}

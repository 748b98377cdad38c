/** A program of the machine, run to its end; and whether it is there at all. */
import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string };

const boundMs = 15_000;

/** Where the command is; undefined: this machine has none. Daemons of Debian lie outside a user's PATH. */
export function findCommand(name: string): string | undefined {
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // The next folder may have it.
    }
  }
  return undefined;
}

/** Runs a command; one that takes longer than the bound is killed and has the code 137. */
export function runCommand(
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(
      command,
      args,
      { timeout: boundMs, killSignal: 'SIGKILL', env: { PATH: process.env.PATH, LANG: 'C', ...environment } },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 137;
        resolve({ code, stdout, stderr });
      },
    );
  });
}

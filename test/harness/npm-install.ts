/** npm in tests: what it is given, and what it says where its registry cannot be reached, so that a test skips. */
import { execFile } from 'node:child_process';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

/** A registry that falls silent is asked again: npm by itself waits for five minutes. */
export const fetching = ['--fetch-timeout=15000', '--fetch-retry-mintimeout=1000'];

/** What npm says when a package is neither in its cache nor to be fetched. */
export const unreachable =
  /ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT/;

export const whyUnreachable = 'the npm registry cannot be reached';

/** The Node that runs the tests before any other, as npm and the scripts of packages look for one. */
export const nodePath = `${dirname(process.execPath)}:${process.env.PATH ?? ''}`;

/**
 * Installs what the lockfile of a folder names, without scripts.
 * @returns why the packages cannot be had; empty if they are there
 */
export async function installLocked(folder: string): Promise<string> {
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', ...fetching];
  try {
    await promisify(execFile)('npm', args, { cwd: folder, env: { ...process.env, PATH: nodePath } });
    return '';
  } catch (error) {
    const { stderr } = error as { stderr: string };
    if (unreachable.test(stderr)) return whyUnreachable;
    throw error;
  }
}

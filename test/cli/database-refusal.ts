/** The one line with which `comity serve` ends where it cannot use PostgreSQL. */
import assert from 'node:assert/strict';
import { runCommand } from '../harness/command-line.ts';
import { shopConfig } from '../harness/running-server.ts';

/**
 * Runs `comity serve`, which must exit 1 with one line that names the database.
 * @param hidden passwords, which the line must not hold
 * @returns the line behind the name of the database
 */
export async function refusalOf(
  url: string,
  hidden: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { code, stdout, stderr } = await runCommand(['serve'], {
    COMITY_CONFIG: shopConfig,
    COMITY_PORT: '0',
    COMITY_DATABASE_URL: url,
    ...environment,
  });
  const { host, pathname } = new URL(url);
  const beginning = `comity: PostgreSQL at ${host}${pathname} `;
  assert.deepEqual([code, stdout], [1, ''], stderr);
  assert.ok(stderr.startsWith(beginning), stderr);
  assert.equal(stderr.indexOf('\n'), stderr.length - 1, stderr);
  for (const password of hidden) assert.ok(!stderr.includes(password), stderr);
  return stderr.slice(beginning.length, -1);
}

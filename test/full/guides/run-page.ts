/**
 * Runs the examples of one page against a program of its own, the real one on a free port, and compares what each prints
 * with what the page shows (compare-output.ts).
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { adminKey } from '../../harness/exchange.ts';
import { emptyDatabase } from '../../harness/postgres-database.ts';
import { shopConfig } from '../../harness/running-server.ts';
import { spawnServer } from '../../harness/server-process.ts';
import { linkPackage, temporaryFolder } from '../../harness/temporary-folder.ts';
import { OutputComparison } from './compare-output.ts';
import { type Example, type Page, readExamples } from './read-examples.ts';
import { isInstalled, openShell, type ShellSession } from './shell-session.ts';

/** The address that every page uses: that of a program started with the defaults. */
const shownUrl = 'http://127.0.0.1:4000';

const eventuallyBoundMs = 60_000;
const againMs = 50;

/** Runs every example in order; the first that fails says where in the page it stands. Returns how many ran. */
export async function runPage(path: string, options: { readonly realCurl: boolean }): Promise<number> {
  const page = readExamples(readFileSync(path, 'utf8'));
  const shell = options.realCurl && isInstalled('bash') ? 'bash' : 'sh';
  const folder = temporaryFolder();
  const database = page.environment.COMITY_DATABASE_URL === undefined ? undefined : await emptyDatabase();
  const databaseUrl = database === undefined ? {} : { COMITY_DATABASE_URL: database.url };
  const configuration = configurationOf(page, folder);
  const program = await spawnServer({
    env: { COMITY_DEVELOPMENT: 'on', ...page.environment, ...databaseUrl },
    ...configuration,
  });
  const environment = {
    COMITY_ADMIN_KEY: adminKey,
    COMITY_DATA: program.folder,
    COMITY_PORT: String(program.port),
    COMITY_CONFIG: configuration.config ?? shopConfig,
    ...databaseUrl,
  };
  const session = openShell({ shell, realCurl: options.realCurl, environment });
  const comparison = new OutputComparison();
  try {
    for (const example of page.examples) {
      if (example.needsCurl && !options.realCurl) continue;
      await runExample(example, { path, session, comparison, url: program.url, realCurl: options.realCurl });
    }
  } finally {
    await session.end();
    await program.stop();
    await database?.dispose();
  }
  return page.examples.length;
}

/** The page's own configuration as a file of a project that depends on this repository. */
function configurationOf({ configuration }: Page, folder: string): { config?: string } {
  if (configuration === undefined) return {};
  const config = join(folder, 'comity.config.ts');
  linkPackage(folder);
  writeFileSync(config, configuration);
  return { config };
}

type Run = {
  readonly path: string;
  readonly session: ShellSession;
  readonly comparison: OutputComparison;
  readonly url: string;
  readonly realCurl: boolean;
};

async function runExample(example: Example, run: Run): Promise<void> {
  const endAt = performance.now() + (example.eventually ? eventuallyBoundMs : 0);
  for (;;) {
    const { stdout, stderr } = await run.session.run(example.script.replaceAll(shownUrl, run.url));
    try {
      judge(example, stdout.replaceAll(run.url, shownUrl), run.comparison);
      // The machine's curl shows its progress there when its output is a file.
      if (!run.realCurl) assert.equal(stderr, '');
      return;
    } catch (error) {
      if (performance.now() >= endAt) {
        const told = error instanceof Error ? error.message : String(error);
        throw new Error(`${run.path}:${example.line}\n${example.script}\n${told}\n${stdout}${stderr}`, {
          cause: error,
        });
      }
      await delay(againMs);
    }
  }
}

function judge({ expected }: Example, stdout: string, comparison: OutputComparison): void {
  if (expected === undefined) assert.equal(stdout, '', 'the page shows no output for this block');
  else comparison.compare(expected.form, expected.text, stdout);
}

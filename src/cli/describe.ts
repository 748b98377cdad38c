/**
 * `comity openapi` and `comity types`: what programs that call the API need to know of it, from the configuration alone: without a server,
 * and without the store of the settings.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WrittenSettings } from '../config/load-settings.ts';
import { findNamesInFunctions } from '../config/named-in-functions.ts';
import { createMetrics } from '../observe/metrics.ts';
import { answerOnce } from '../running.ts';
import { exitCodes } from './failure.ts';
import { printTypes } from './print-types.ts';
import { readConfiguration } from './read-configuration.ts';
import { type Terminal, writeOctets } from './terminal.ts';

/** Prints the document as the server would serve it, in lines. */
export async function describeApi(
  terminal: Terminal,
  options: WrittenSettings,
  part: string | undefined,
): Promise<number> {
  const { settings, ...reading } = await readConfiguration(terminal.environment, options);
  const folder = mkdtempSync(join(tmpdir(), 'comity-openapi-'));
  try {
    const { response, content } = await answerOnce(
      {
        ...reading,
        settings: { ...settings, data: folder, databaseUrl: undefined },
        observe: () => undefined,
        metrics: createMetrics(),
      },
      new Request(`http://localhost/openapi.json${part === undefined ? '' : `?part=${part}`}`),
    );
    if (response.status !== 200)
      throw new Error(`the document was answered with ${response.status}: ${content}`);
    await print(terminal, `${JSON.stringify(JSON.parse(content), undefined, 2)}\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return exitCodes.done;
}

export async function describeTypes(terminal: Terminal, options: WrittenSettings): Promise<number> {
  const { configuration, settings } = await readConfiguration(terminal.environment, options);
  const { codes } = await findNamesInFunctions(settings.config, 'all');
  await print(terminal, printTypes(configuration, codes));
  return exitCodes.done;
}

/** Resolves when all is written: a pipe takes a long text in pieces. */
function print({ stdout }: Terminal, text: string): Promise<void> {
  return writeOctets(stdout, (take) => take(Buffer.from(text)));
}

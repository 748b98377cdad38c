/**
 * Imports the user's configuration file, TypeScript or JavaScript, as Node runs it. A failure becomes a sentence with the file, and the line
 * where one is known, without our stack.
 */
import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Configuration, resolveConfiguration } from './configuration.ts';
import type { ConfigurationDeclaration } from './define.ts';
import { ConfigurationError } from './inspection.ts';

const complaintCharactersMax = 500;

export type LoadedConfiguration = {
  readonly configuration: Configuration;
  readonly warnings: readonly string[];
};

/**
 * @param path of the file, relative to the working directory
 * @throws ConfigurationError when it is missing, fails, or has mistakes
 */
export async function loadConfiguration(path: string): Promise<LoadedConfiguration> {
  const absolute = resolve(path);
  if (!existsSync(absolute)) {
    throw new ConfigurationError([
      `there is no configuration file at ${absolute}; create one with "comity init", or give its path with --config or COMITY_CONFIG`,
    ]);
  }
  if (!statSync(absolute).isFile()) {
    throw new ConfigurationError([
      `${absolute} is not a file; give the path of the configuration file itself`,
    ]);
  }
  const declaration = await importDefault(path, absolute);
  const warnings: string[] = [];
  try {
    const warn = (sentence: string): void => void warnings.push(`${path}: ${sentence}`);
    const configuration = resolveConfiguration(declaration, warn, pathToFileURL(absolute));
    return { configuration, warnings };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const { placeMistakes } = await import('./declaration-places.ts');
    const { settings } = error;
    throw new ConfigurationError(await placeMistakes(path, error.mistakes), { settings });
  }
}

async function importDefault(path: string, absolute: string): Promise<ConfigurationDeclaration> {
  let module: { readonly default?: ConfigurationDeclaration };
  try {
    module = await import(pathToFileURL(absolute).href);
  } catch (error) {
    const line = lineOf(error, absolute);
    const place = line === undefined ? path : `${path}:${line}`;
    throw new ConfigurationError([`${place}: ${complaintOf(error)}${hintFor(error, path, line)}`], {
      cause: error,
    });
  }
  if (module.default !== undefined) return module.default;
  throw new ConfigurationError([
    `${path} has no default export; end it with "export default defineConfig({ collections: { ... } })"`,
  ]);
}

/** The line that failed: the first place of the stack that lies in the user's file, which appears there as a path or URL. */
function lineOf(error: unknown, absolute: string): number | undefined {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  for (const file of [absolute, pathToFileURL(absolute).href]) {
    const start = stack.indexOf(`${file}:`);
    const line = start === -1 ? Number.NaN : Number.parseInt(stack.slice(start + file.length + 1), 10);
    if (!Number.isNaN(line)) return line;
  }
  return undefined;
}

function complaintOf(error: unknown): string {
  if (!(error instanceof Error)) return `the file throws ${String(error).slice(0, complaintCharactersMax)}`;
  const [line = ''] = error.message.trim().split('\n');
  const complaint = line.trim().slice(0, complaintCharactersMax);
  return complaint === '' ? error.name : complaint;
}

function hintFor(error: unknown, path: string, line: number | undefined): string {
  if (!(error instanceof Error)) return '';
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ERR_MODULE_NOT_FOUND' && message.startsWith('Cannot find package')) {
    return '; run "npm install" in the folder of the configuration';
  }
  // Node does not expose the place of a syntax error in plain JavaScript.
  return error instanceof SyntaxError && line === undefined ? `; "node --check ${path}" shows where` : '';
}

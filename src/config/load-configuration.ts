/**
 * Imports the user's configuration file, TypeScript or JavaScript, as Node runs it. A failure becomes a sentence with the file, and the line
 * where one is known, without our stack.
 */
import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Configuration, resolveConfiguration } from './configuration.ts';
import type { ConfigurationDeclaration } from './define.ts';
import { placeFailure } from './import-failure.ts';
import { ConfigurationError } from './inspection.ts';

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
    throw new ConfigurationError(await placeMistakes(path, error.mistakes));
  }
}

async function importDefault(path: string, absolute: string): Promise<ConfigurationDeclaration> {
  let module: { readonly default?: ConfigurationDeclaration };
  try {
    module = await import(pathToFileURL(absolute).href);
  } catch (error) {
    throw new ConfigurationError([await placeFailure(path, error)], { cause: error });
  }
  if (module.default !== undefined) return module.default;
  throw new ConfigurationError([
    `${path} has no default export; end it with "export default defineConfig({ collections: { ... } })"`,
  ]);
}

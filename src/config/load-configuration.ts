/**
 * Imports the user's configuration file, TypeScript or JavaScript, as Node runs it. A failure becomes a sentence with the file, and the line
 * where one is known, without our stack.
 */
import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import process from 'node:process';
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
    const { settings } = error;
    throw new ConfigurationError(await placeMistakes(path, error.mistakes), { settings });
  }
}

async function importDefault(path: string, absolute: string): Promise<ConfigurationDeclaration> {
  let module: { readonly default?: ConfigurationDeclaration };
  try {
    module = await settled(path, import(pathToFileURL(absolute).href));
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    throw new ConfigurationError([await placeFailure(path, error)], { cause: error });
  }
  if (module.default !== undefined) return module.default;
  throw new ConfigurationError([
    `${path} has no default export; end it with "export default defineConfig({ collections: { ... } })"`,
  ]);
}

/** A process that has nothing left to do would end without a word, as if the configuration were sound. */
async function settled<T>(path: string, imported: Promise<T>): Promise<T> {
  const idle = Promise.withResolvers<never>();
  const onIdle = (): void => {
    const sentence = `${path} does not finish loading: it, or a file that it imports, awaits something that never happens`;
    idle.reject(new ConfigurationError([sentence]));
  };
  process.once('beforeExit', onIdle);
  try {
    return await Promise.race([imported, idle.promise]);
  } finally {
    process.off('beforeExit', onIdle);
  }
}

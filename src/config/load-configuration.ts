/**
 * Imports the user's configuration file, TypeScript or JavaScript, as Node runs it. A failure becomes a sentence with the file, and the line
 * where one is known, without our stack.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, isAbsolute, relative, resolve, sep } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Configuration, resolveConfiguration } from './configuration.ts';
import type { ConfigurationDeclaration } from './define.ts';
import { ConfigurationError } from './inspection.ts';
import { findNamesInFunctions } from './named-in-functions.ts';

type LoadedConfiguration = {
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
    const inFunctions = await findNamesInFunctions(path, 'checked');
    const configuration = resolveConfiguration(declaration, warn, pathToFileURL(absolute), inFunctions);
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

// The place of an error that a user's module throws while it is imported, or that a function of it throws: the file where it arose, which
// may be one that the module imports, and the line. Node gives the place in the stack, in the message, or not at all.

const complaintCharactersMax = 500;

/** The folder of the bundle, or of the sources. */
const ownFolder = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? '..' : '.', import.meta.url));

/** `/project/lib/deep.ts:3`, which begins the stack of an error of syntax, and `    at f (file:///project/lib/deep.ts:3:20)`. */
const placeInLine =
  /^(?: {4}at (?:.* \()?(?:async )?)?(file:\/\/\S+?|\/.+?|[A-Z]:\\.+?)(?:[?#][^\s:]*)?:(\d+)(?::\d+)?\)?$/;
/** The marker of the first frame that Node called. */
const loaderInStack = 'node:internal/modules/';
const importer = / imported from (.+)$/;
const missing = /^Cannot find (?:module|package) '(.+?)'/;

type Place = { readonly file: string; readonly line: number | undefined };

/**
 * @param path of the module that was imported, as the user wrote it
 * @returns `lib/deep.ts:3: Expression expected`; with the path alone where no place is known
 */
export async function placeFailure(path: string, error: unknown): Promise<string> {
  const place = placeInStack(error) ?? placeInMessage(error) ?? (await placeOfSyntax(path, error));
  if (place === undefined) return `${path}: ${complaintOf(error)}`;
  const file = shownPath(path, place.file);
  return `${place.line === undefined ? file : `${file}:${place.line}`}: ${complaintOf(error, place.file)}${hintFor(error)}`;
}

function placeInStack(error: unknown): Place | undefined {
  const lines = error instanceof Error ? (error.stack ?? '').split('\n') : [];
  for (const line of lines) {
    if (line.includes(loaderInStack)) return undefined;
    const [, written, number] = placeInLine.exec(line) ?? [];
    if (written === undefined) continue;
    const file = written.startsWith('file:') ? fileURLToPath(written) : written;
    if (file.startsWith(ownFolder) || file.includes(`${sep}node_modules${sep}`)) continue;
    return { file, line: Number(number) };
  }
  return undefined;
}

/** A module that is missing, and JSON that is none. */
function placeInMessage(error: unknown): Place | undefined {
  if (!(error instanceof Error)) return undefined;
  const [, from] = importer.exec(error.message) ?? [];
  if (from !== undefined) return { file: from, line: lineOfImport(from, error.message) };
  const [file = ''] = error.message.split(': ', 1);
  return error instanceof SyntaxError && isAbsolute(file) ? { file, line: undefined } : undefined;
}

function lineOfImport(file: string, message: string): number | undefined {
  const [, name = ''] = missing.exec(message) ?? [];
  try {
    const lines = readFileSync(file, 'utf8').split('\n');
    const at = lines.findIndex((line) => line.includes('import') && line.includes(basename(name)));
    return at === -1 ? undefined : at + 1;
  } catch {
    // It is being changed: the file is named without a line.
    return undefined;
  }
}

async function placeOfSyntax(path: string, error: unknown): Promise<Place | undefined> {
  if (!(error instanceof SyntaxError)) return undefined;
  const { findSyntaxMistake } = await import('./declaration-places.ts');
  return findSyntaxMistake(path);
}

/** As the user wrote it, or from the working directory where the file is below it. */
function shownPath(path: string, file: string): string {
  if (file === resolve(path)) return path;
  const below = relative(process.cwd(), file);
  return below.startsWith('..') || isAbsolute(below) ? file : below;
}

function complaintOf(error: unknown, file?: string): string {
  if (!(error instanceof Error)) return `the file throws ${String(error).slice(0, complaintCharactersMax)}`;
  const [line = ''] = error.message.trim().split('\n');
  const plain = line.replace(importer, '').replace(`${file}: `, '');
  const complaint = plain.trim().slice(0, complaintCharactersMax);
  return complaint === '' ? error.name : complaint;
}

function hintFor(error: unknown): string {
  const isPackage = error instanceof Error && error.message.startsWith('Cannot find package');
  return isPackage ? '; run "npm install" in the folder of the configuration' : '';
}

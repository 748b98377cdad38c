/**
 * Where a thread's entry file is: it runs as TypeScript in development and as JavaScript from `dist`, and unlike an import
 * a URL is not rewritten when compiled. The entry has the extension of the file that starts it.
 */

/**
 * @param entry relative to the file that asks, without extension: `./thread`
 * @param from `import.meta.url` of that file
 */
export function workerFile(entry: string, from: string): URL {
  return new URL(`${entry}${from.endsWith('.ts') ? '.ts' : '.js'}`, from);
}

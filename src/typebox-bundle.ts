/**
 * Redirects imports of the schema library to a bundle, if there is one: its 700 modules take 250 ms of processor time to load, the bundle 20
 * (docs/decisions/0032-typebox-in-a-few-files.md). Imports of other packages are unchanged.
 */
import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';

/** This package's imports of it, and the files of the bundle. */
export const typeboxFiles: ReadonlyMap<string, string> = new Map([
  ['typebox', 'typebox.mjs'],
  ['typebox/compile', 'compile.mjs'],
  ['typebox/schema', 'schema.mjs'],
  ['typebox/system', 'system.mjs'],
  ['typebox/value', 'value.mjs'],
]);

/** Beside the compiled program, or where the set-up of a checkout has put it. */
const folders = ['./typebox/', '../node_modules/.cache/comity/typebox/'];

/** Applies to the calling thread and its later imports. */
export function useTypeboxBundle(): void {
  const root = new URL('..', import.meta.url).href;
  const folder = folders
    .map((each) => new URL(each, import.meta.url))
    .find((each) => existsSync(new URL('typebox.mjs', each)));
  if (folder === undefined) return;
  registerHooks({
    resolve(specifier, context, next) {
      const file = typeboxFiles.get(specifier);
      if (file === undefined || context.parentURL?.startsWith(root) !== true) return next(specifier, context);
      return { url: new URL(file, folder).href, format: 'module', shortCircuit: true };
    },
  });
}

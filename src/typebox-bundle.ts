/**
 * Leads imports of the schema library to a bundle of it, where there is one: its 700 modules take 250 ms of processor time to load, the bundle 20
 * (docs/decisions/0032-typebox-in-a-few-files.md). Without one, and for everybody outside of this package, nothing changes.
 */
import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';

/** What this package imports of it, and the file of the bundle. */
export const typeboxFiles: ReadonlyMap<string, string> = new Map([
  ['typebox', 'typebox.mjs'],
  ['typebox/compile', 'compile.mjs'],
  ['typebox/schema', 'schema.mjs'],
  ['typebox/system', 'system.mjs'],
  ['typebox/value', 'value.mjs'],
]);

/** Beside the compiled program, or where the set-up of a checkout has put it. */
const folders = ['./typebox/', '../node_modules/.cache/comity/typebox/'];

/** Holds for the thread that calls it, and what it imports from then on. */
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

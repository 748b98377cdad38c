/** The folder of this package and its version from package.json, which is one folder up from src/ and from the bundle in dist/. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export function packageRoot(): string {
  return fileURLToPath(new URL('..', import.meta.url));
}

export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return String((manifest as { readonly version?: unknown }).version);
}

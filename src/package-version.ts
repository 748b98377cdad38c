/** The version of this package from package.json, which is one folder up from src/ and from dist/. */
import { readFileSync } from 'node:fs';

export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return String((manifest as { readonly version?: unknown }).version);
}

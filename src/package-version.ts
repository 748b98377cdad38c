/** The version of this package, as package.json says it, which stands one folder up from src/ and dist/ alike. */
import { readFileSync } from 'node:fs';

export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return String((manifest as { readonly version?: unknown }).version);
}

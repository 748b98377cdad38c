/**
 * The folder of this package, and its version and the Node that it needs, from package.json, which is one folder up from src/ and from the
 * bundle in dist/. An old Node runs this file, to say which one is needed.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export function packageRoot(): string {
  return fileURLToPath(new URL('..', import.meta.url));
}

export function packageVersion(): string {
  return String(manifest().version);
}

/** The earliest Node that the package runs on, such as `24.7`. */
export function nodeNeeded(): string {
  return String(manifest().engines?.node).replace('>=', '');
}

/** @param version of a Node, such as `26.10.0` */
export function isNodeRecent(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [neededMajor = 0, neededMinor = 0] = nodeNeeded().split('.').map(Number);
  return major > neededMajor || (major === neededMajor && minor >= neededMinor);
}

/** Returns the sentence that an old Node gets from the command and from an import of the package; undefined: this one is recent enough. */
export function nodeRefusal(): string | undefined {
  const { node } = process.versions;
  return isNodeRecent(node) ? undefined : `comity: needs Node ${nodeNeeded()} or later, and this is ${node}`;
}

/** @throws Error with that sentence */
export function refuseOldNode(): void {
  const refusal = nodeRefusal();
  if (refusal !== undefined) throw new Error(refusal);
}

function manifest(): { readonly version?: unknown; readonly engines?: { readonly node?: unknown } } {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
}

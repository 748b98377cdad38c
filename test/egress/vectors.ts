/** The published vectors of the guard, as this folder's tests and readers of the guide have them. */
import { readFileSync } from 'node:fs';

export type Vectors = {
  readonly addresses: readonly {
    readonly address: string;
    readonly allowed: boolean;
    readonly note: string;
  }[];
  readonly urls: readonly { readonly url: string; readonly ok: boolean; readonly note: string }[];
};

export function readVectors(): Vectors {
  return JSON.parse(readFileSync(new URL('./vectors/addresses.json', import.meta.url), 'utf8')) as Vectors;
}

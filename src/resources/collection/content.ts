/** The content that a collection accepts for each method (§4.4.1, §4.6), and its parsing. */
import type { MediaType } from '../../http/syntax/media-type.ts';
import type { Parsed } from '../../kernel/content/content-shape.ts';
import type { Understood } from '../../kernel/resource.ts';
import type { BodyFormat, Collection } from '../../model/collection.ts';
import { type MaybePromise, whenKnown } from '../../store/store.ts';
import type { Served } from './served.ts';

export const mediaTypeOf: Readonly<Record<BodyFormat, string>> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  multipart: 'multipart/form-data',
  text: 'text/plain',
};

/** Media types of a complete resource, for POST and PUT. */
export function bodyTypes(collection: Collection): readonly string[] {
  return [...collection.formats].map((format) => mediaTypeOf[format]);
}

/** `application/json` means a merge patch. */
export const patchTypes: readonly string[] = [
  'application/merge-patch+json',
  'application/json-patch+json',
  'application/json',
];

/** Parses a complete resource; its format no longer matters afterwards. */
export function understandBody(
  served: Served,
  bytes: Uint8Array,
  mediaType: MediaType,
): MaybePromise<Understood<unknown>> {
  return whenKnown(served.parse(bytes, mediaType), toValue);
}

function toValue(parsed: Parsed): Understood<unknown> {
  return parsed.ok ? { ok: true, value: parsed.value } : { ok: false, problem: parsed.problem };
}

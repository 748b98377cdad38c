/** What comes out of parse-content.ts: a value in one of the formats of §4.4, §4.6 and §4.9, or why there is none. */
import type { Problem } from '../../http/problem.ts';
import type { Json } from '../../http/syntax/json.ts';

export type PatchFormat = 'json' | 'merge-patch' | 'json-patch';

export type ContentFormat = PatchFormat | 'form' | 'multipart' | 'text' | 'sql';

/** `value`: any JSON for the JSON formats, an object for forms and text with a shape, a string for SQL. */
export type Parsed =
  | { readonly ok: true; readonly format: ContentFormat; readonly value: Json }
  | { readonly ok: false; readonly problem: Problem };

/** A patch as PATCH takes it; `json` means a merge patch (§4.6.1). */
export type PatchContent = { readonly format: PatchFormat; readonly value: Json };

export type ParsedPatch =
  | { readonly ok: true; readonly value: PatchContent }
  | { readonly ok: false; readonly problem: Problem };

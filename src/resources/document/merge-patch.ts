/**
 * JSON Merge Patch: RFC 7396 §2. Null removes, objects merge, anything else replaces whole; arrays are such.
 * Neither argument is changed; the result shares unchanged parts with both.
 */
import type { Json } from '../../http/syntax/json.ts';
import { isMembers, type Members, ownMember, setMember } from './json-value.ts';

/** The target as the patch leaves it. As deep as the deeper of both. */
export function mergePatch(target: Json, patch: Json): Json {
  if (!isMembers(patch)) return patch;
  const before: Members = isMembers(target) ? target : {};
  const after: Members = {};
  for (const name of Object.keys(before)) {
    if (ownMember(patch, name) !== null) setMember(after, name, ownMember(before, name) ?? null);
  }
  for (const name of Object.keys(patch)) {
    const value = ownMember(patch, name) ?? null;
    if (value !== null) setMember(after, name, mergePatch(ownMember(before, name) ?? null, value));
  }
  return after;
}

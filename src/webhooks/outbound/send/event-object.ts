/**
 * Parts of an event's document without parsing it: deliveries of `standard` endpoints carry the resource alone (§2.7), and that is cut
 * out of what is stored. Made for the documents of model/event.ts and for those with a member `tenant` before `data`; another order of the
 * members is not understood.
 */

const before = ',"data":{"object":';
const after = '}}';

/**
 * The resource that the event tells of, as JSON text; undefined where the document holds none.
 *
 * What stands before `data` are texts and a number. A quotation mark inside a JSON text has a backslash before it, so this sequence can
 * neither stand in one nor begin at the end of one: the first is the right one, whatever the resource holds.
 */
export function objectOf(doc: string): string | undefined {
  const at = doc.indexOf(before);
  return at < 0 || !doc.endsWith(after) ? undefined : doc.slice(at + before.length, -after.length);
}

/** Whether nothing but the envelope is left, because the payload was removed on request. */
export function isExpunged(doc: string): boolean {
  // The resource may have such a member as well: only then is it worth parsing.
  if (!doc.includes('"expunged":true')) return false;
  return (JSON.parse(doc) as { readonly expunged?: unknown }).expunged === true;
}

/**
 * Reduces a stored representation to the selected members (`fields=`). It cuts the stored text, so values that are not
 * selected are never parsed. A nested field keeps its parent objects; an absent field stays absent. Requests without
 * `fields` serve the stored bytes instead.
 */
import { memberSpan, memberSpans } from '../../http/syntax/json-members.ts';
import type { Field } from '../../model/field.ts';

type Selected = Map<string, Selected | undefined>;

/** @returns a function that reduces the stored text of a JSON object */
export function projection(select: readonly Field[]): (doc: string) => string {
  const selected = buildSelected(select);
  return (doc) => cutMembers(doc, 0, selected) ?? '{}';
}

/**
 * Adds a member at the end of the text of an object.
 * @param path of the object within the document; objects that are missing on it are made
 * @param member its name and value, as JSON
 */
export function withMemberAt(doc: string, [first, ...rest]: readonly string[], member: string): string {
  if (first === undefined) return withMember(doc, member);
  const span = memberSpan(doc, first);
  if (span === undefined)
    return withMember(doc, `${JSON.stringify(first)}:${withMemberAt('{}', rest, member)}`);
  const { start, end } = span;
  return `${doc.slice(0, start)}${withMemberAt(doc.slice(start, end), rest, member)}${doc.slice(end)}`;
}

/** Adds a member at the end of the text of an object. @param member its name and value, as JSON */
export function withMember(doc: string, member: string): string {
  return `${doc.slice(0, -1)}${doc === '{}' ? '' : ','}${member}}`;
}

function buildSelected(select: readonly Field[]): Selected {
  const root: Selected = new Map();
  for (const { path } of select) {
    let members = root;
    for (const [index, name] of path.entries()) {
      const isLast = index === path.length - 1;
      // A selected parent already includes its members.
      if (members.has(name) && members.get(name) === undefined) break;
      const next: Selected | undefined = isLast ? undefined : (members.get(name) ?? new Map());
      members.set(name, next);
      if (next === undefined) break;
      members = next;
    }
  }
  return root;
}

function cutMembers(doc: string, objectAt: number, selected: Selected): string | undefined {
  const spans = memberSpans(doc, selected.keys(), objectAt);
  let text = '';
  for (const [name, within] of selected) {
    const span = spans.get(name);
    if (span === undefined) continue;
    const value =
      within === undefined ? doc.slice(span.start, span.end) : cutMembers(doc, span.start, within);
    if (value !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${value}`;
  }
  return text === '' ? undefined : `{${text}}`;
}

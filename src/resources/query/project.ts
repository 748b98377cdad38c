/**
 * A stored representation reduced to the selected members. What is absent stays absent; a nested field keeps the
 * objects around it. Works on the text: the values that are not selected are never made. Reads by id and lists without `fields` never
 * come here: their bytes are served as stored.
 */
import { memberSpans } from '../../http/syntax/json-members.ts';
import type { Field } from '../../model/field.ts';

/** Members by name, in the order of the selection; undefined: the whole value. */
type Selected = Map<string, Selected | undefined>;

/** @returns what reduces the text of a JSON object as stored */
export function projection(select: readonly Field[]): (doc: string) => string {
  const selected = selectedOf(select);
  return (doc) => textOf(doc, 0, selected) ?? '{}';
}

function selectedOf(select: readonly Field[]): Selected {
  const root: Selected = new Map();
  for (const { path } of select) {
    let members = root;
    for (const [index, name] of path.entries()) {
      const isLast = index === path.length - 1;
      // A member that is selected whole has in it what is selected of it.
      if (members.has(name) && members.get(name) === undefined) break;
      const next: Selected | undefined = isLast ? undefined : (members.get(name) ?? new Map());
      members.set(name, next);
      if (next === undefined) break;
      members = next;
    }
  }
  return root;
}

/** Undefined where none of the members is there. */
function textOf(doc: string, objectAt: number, selected: Selected): string | undefined {
  const spans = memberSpans(doc, selected.keys(), objectAt);
  let text = '';
  for (const [name, within] of selected) {
    const span = spans.get(name);
    if (span === undefined) continue;
    const value = within === undefined ? doc.slice(span.start, span.end) : textOf(doc, span.start, within);
    if (value !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${value}`;
  }
  return text === '' ? undefined : `{${text}}`;
}

/**
 * Section signs in a text, each with what it cites: a clause of docs/specification, or a section of a standard that is named before it.
 * `RFC 9112 §3.2, §6.1` cites that RFC twice; `(§4.2; RFC 9110 §9.3.1)` cites our §4.2 and the RFC.
 */

export type Citation = {
  /** Name of the standard, such as `RFC 9110`; undefined: our specification. */
  readonly standard: string | undefined;
  /** Number as written, without a full stop behind it: `4.5.3`. */
  readonly section: string;
  /** Number of the last section of a range such as `§4.5 to §4.7`, which begins with this one. */
  readonly rangeEnd: string | undefined;
  /** Offset of the section sign. */
  readonly offset: number;
  /** Words before the section sign, of which a refusal can tell, at most 60 characters. */
  readonly before: string;
};

/** Names after which a section sign belongs to a standard. */
const standardName =
  /(RFC \d{3,5}|JSON Schema [\d-]+(?: core)?|OpenID Connect \w+ [\d.]+|OpenAPI [\d.]+|Idempotency-Key|draft-[\w-]+|URL Standard|HTML|Fetch) $/;

const sectionSign = /\u00a7 ?([0-9A-Z](?:[0-9A-Za-z.]*[0-9A-Za-z])?)?/g;

/** What may lie between two section signs of one list. */
const listJoint = /^(?:,|;)?(?: and| or| to| step \d+(?: to \d+)?|-|–)? ?$/;
const rangeJoint = /^(?: to |-|–)$/;

const charactersBefore = 120;

/** Every section sign of a text, in order. One without a number has the section ``. */
export function listCitations(text: string): readonly Citation[] {
  const found: Citation[] = [];
  let end = 0;
  for (const match of text.matchAll(sectionSign)) {
    const before = joinLines(text.slice(Math.max(0, match.index - charactersBefore), match.index));
    const between = joinLines(text.slice(end, match.index));
    const last = found.at(-1);
    let standard = standardName.exec(before)?.[1];
    if (standard === undefined && last !== undefined && listJoint.test(between)) standard = last.standard;
    const section = match[1] ?? '';
    if (last !== undefined && rangeJoint.test(between))
      found[found.length - 1] = { ...last, rangeEnd: section };
    found.push({ standard, section, rangeEnd: undefined, offset: match.index, before: before.slice(-60) });
    end = match.index + match[0].length;
  }
  return found;
}

/** The sections of a citation: both ends of a range and those between them, as far as the last number says. */
export function expandCitation({ section, rangeEnd }: Citation): readonly string[] {
  const [first, last] = [splitNumber(section), splitNumber(rangeEnd ?? section)];
  if (first.parent !== last.parent || !(last.number > first.number)) return [section];
  return Array.from(
    { length: last.number - first.number + 1 },
    (_, index) => `${first.parent}${first.number + index}`,
  );
}

function splitNumber(section: string) {
  const at = section.lastIndexOf('.') + 1;
  return { parent: section.slice(0, at), number: Number(section.slice(at)) };
}

/** One line of a comment that goes over several. */
function joinLines(text: string): string {
  return text.replace(/\s*\n[ \t]*(?:\*|\/\/)?[ \t]*/g, ' ');
}

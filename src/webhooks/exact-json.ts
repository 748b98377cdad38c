/**
 * The JSON of a message: the body, or a field of a form, whose integers are exact. A number of JavaScript holds those up to 2^53 (RFC 8259
 * §6), and senders use longer ids.
 */

declare const URLSearchParams: { new (text: string): { get(name: string): string | null } };

export type JsonOptions = {
  /** Returns integers beyond 2^53 as text, or as BigInt. Absent: a body with one is an error. */
  readonly integers?: 'text' | 'bigint' | undefined;
};

/** Sixteen digits may be beyond 2^53; also of a string, which the slower parser then leaves as it is. */
const longDigits = /\d{16}/;
const integerForm = /^-?\d+$/;

/** @throws SyntaxError for a text that is not JSON @throws RangeError for an integer beyond 2^53 without `integers` */
export function parseExactly(text: string, { integers }: JsonOptions = {}): unknown {
  if (!longDigits.test(text)) return JSON.parse(text);
  return JSON.parse(text, (name: string, value: unknown, context?: { readonly source?: string }) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
    const source = context?.source ?? String(value);
    if (!integerForm.test(source)) return value;
    if (integers === 'text') return source;
    if (integers === 'bigint') return BigInt(source);
    throw new RangeError(
      `the member ${JSON.stringify(name)} is the integer ${source}, which a number would round: json({ integers: 'text' }) returns it as text`,
    );
  });
}

const formType = /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i;

/**
 * @param field the field of a form that holds the JSON, by the rule of the sender; undefined: it is the body
 * @returns undefined if the form does not have the field
 */
export function jsonTextOf(
  text: string,
  contentType: string | null | undefined,
  field: string | undefined,
): string | undefined {
  if (field === undefined || !formType.test(contentType ?? '')) return text;
  return new URLSearchParams(text).get(field) ?? undefined;
}

/** A message of a sender as far as it is looked at here: octets and fields. Whether it is genuine was found out elsewhere, and before. */

export type Message = {
  /** The octets as they came. */
  readonly body: Uint8Array;
  /** By name in lower case. Undefined: not there; an array: it came more than once. */
  readonly header: (name: string) => string | readonly string[] | undefined;
};

/** The value of a field that came once and says something. Of several nobody knows which one was meant. */
export function fieldText(message: Message, name: string): string | undefined {
  const value = message.header(name);
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  return text === '' ? undefined : text;
}

/** The media type without its parameters, in lower case. */
export function mediaTypeOf(message: Message): string | undefined {
  return fieldText(message, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase();
}

/* Header fields as frameworks hand them out, read by name in lower case. */

/** `Headers` of fetch, those of Node, or any object with the fields by name, in any case. */
export type HeaderSource =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | number | undefined>>;

/**
 * A field that stands there in two cases of letters came twice.
 * @throws TypeError for what holds no fields
 */
export function readingHeaders(source: HeaderSource): Message['header'] {
  if (typeof source !== 'object' || source === null || Array.isArray(source)) {
    throw new TypeError(
      'headers must be Headers, or an object with the fields by name: pass request.headers',
    );
  }
  if (isHeaders(source)) return (name) => source.get(name) ?? undefined;
  const fields = new Map<string, readonly string[]>();
  for (const [name, value] of Object.entries(source)) {
    const values = valuesOf(value);
    if (values.length === 0) continue;
    const known = fields.get(name.toLowerCase()) ?? [];
    fields.set(name.toLowerCase(), [...known, ...values]);
  }
  return (name) => {
    const values = fields.get(name);
    return values?.length === 1 ? values[0] : values;
  };
}

function isHeaders(source: HeaderSource): source is { get(name: string): string | null } {
  return typeof source.get === 'function';
}

function valuesOf(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.filter((each) => typeof each === 'string');
  if (typeof value === 'string') return [value];
  return typeof value === 'number' ? [String(value)] : [];
}

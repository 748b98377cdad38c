/** The parts of a message that this folder reads: octets and fields. The signature is verified elsewhere. */

export type Message = {
  /** The octets as received. */
  readonly body: Uint8Array;
  /** Finds a field by lower-case name. Undefined: absent; an array: repeated. */
  readonly header: (name: string) => string | readonly string[] | undefined;
};

/** Returns the value of a field that is not empty or repeated. Which of repeated values was meant is unknown. */
export function fieldText(message: Message, name: string): string | undefined {
  const value = message.header(name);
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  return text === '' ? undefined : text;
}

/** Returns the media type without its parameters, in lower case. */
export function mediaTypeOf(message: Message): string | undefined {
  return fieldText(message, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase();
}

/**
 * The header fields as frameworks provide them: `Headers` of fetch, those of Node, or any object with the fields by
 * name, in any case.
 */
export type HeaderSource =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | number | undefined>>;

/**
 * Returns a function that finds fields by lower-case name. Names that differ only in case are a repeated field.
 * @throws TypeError for a value without fields
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

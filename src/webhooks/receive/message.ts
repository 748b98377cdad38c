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

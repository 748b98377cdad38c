/**
 * U+0000, which JSON can write and PostgreSQL cannot keep: refused in every text and member name, whichever store there is, so
 * that both take the same documents.
 */
import type { FieldError } from '../../http/problem.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';

const none: readonly FieldError[] = [];

/** One fault for each text that holds the character; that of a member name points to the object. */
export function nullCharacterFaults(value: unknown): readonly FieldError[] {
  if (!holdsNull(value)) return none;
  const faults: FieldError[] = [];
  collect(value, [], faults);
  return faults;
}

/** The quick answer, which is nearly always no: nothing is allocated. */
function holdsNull(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0');
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(holdsNull);
  for (const name in value) {
    if (name.includes('\0') || holdsNull((value as Readonly<Record<string, unknown>>)[name])) return true;
  }
  return false;
}

function collect(value: unknown, path: readonly string[], faults: FieldError[]): void {
  const fault = (): unknown =>
    faults.push({ pointer: formatJsonPointer(path), message: 'must not contain U+0000' });
  if (typeof value === 'string') {
    if (value.includes('\0')) fault();
  } else if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value);
    if (members.some(([name]) => name.includes('\0'))) fault();
    for (const [name, member] of members) if (!name.includes('\0')) collect(member, [...path, name], faults);
  }
}

/**
 * Rules for a new password (§5.4, RFC 8265 §4.2): its length, and no characters that a client could not send. There are no rules of
 * composition.
 */

export type PasswordBounds = { readonly passwordCharactersMin: number; readonly passwordBytesMax: number };

/** Basic credentials cannot contain them (RFC 7617 §2). */
const control = /\p{Cc}/u;

export function newPasswordFault(password: string, bounds: PasswordBounds): string | undefined {
  const { passwordCharactersMin, passwordBytesMax } = bounds;
  // Before any work on a text of unbounded length.
  if (password.length > passwordBytesMax) return `must be at most ${passwordBytesMax} bytes long`;
  const composed = password.normalize('NFC');
  if (Buffer.byteLength(composed) > passwordBytesMax) return `must be at most ${passwordBytesMax} bytes long`;
  if (!password.isWellFormed() || control.test(password)) return 'must not contain control characters';
  if ([...composed].length < passwordCharactersMin) {
    return `must be at least ${passwordCharactersMin} characters long`;
  }
  return undefined;
}

/** What a new password must be (§5.4, RFC 8265 §4.2). What it is made of is nobody's business, apart from what could not be sent. */

export type PasswordBounds = { readonly passwordCharactersMin: number; readonly passwordBytesMax: number };

/** RFC 7617 §2 has none in Basic credentials, and nobody types one. */
const control = /\p{Cc}/u;

/** Why the password cannot be set, as the message of a field error; undefined: it can. */
export function newPasswordFault(password: string, bounds: PasswordBounds): string | undefined {
  const { passwordCharactersMin, passwordBytesMax } = bounds;
  // Before anything is done with a text of any length.
  if (password.length > passwordBytesMax) return `must not be longer than ${passwordBytesMax} bytes`;
  const composed = password.normalize('NFC');
  if (Buffer.byteLength(composed) > passwordBytesMax)
    return `must not be longer than ${passwordBytesMax} bytes`;
  if (!password.isWellFormed() || control.test(password)) return 'must not hold control characters';
  if ([...composed].length < passwordCharactersMin) {
    return `must be at least ${passwordCharactersMin} characters long`;
  }
  return undefined;
}

/**
 * Errors as the log prints them. Those of our own code are printed whole. Those that a mail server, an issuer or an OpenID
 * provider had a hand in hold text of theirs, which may repeat what they were sent: of these the name, the code and a short
 * message remain, without anything that looks like a credential, an address of mail or a query (§5.1).
 */

/** Causes are followed this far. */
const causesMax = 4;
const foreignCharactersMax = 200;

/** Name, message, stack and causes; of what is no error its text. */
export function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack, cause } = error;
  if (cause === undefined || depth >= causesMax) return { name, message, stack };
  return { name, message, stack, cause: describeError(cause, depth + 1) };
}

/** Name, code, a short message and the causes that are errors; undefined: there was no error. */
export function describeForeignError(error: unknown, depth = 0): unknown {
  if (error === undefined) return undefined;
  if (!(error instanceof Error)) return { message: withoutSecrets(String(error)) };
  const { name, message, cause } = error;
  const code = 'code' in error ? { code: withoutSecrets(String(error.code)) } : {};
  const described = { name, ...code, message: withoutSecrets(message) };
  if (!(cause instanceof Error) || depth >= causesMax) return described;
  return { ...described, cause: describeForeignError(cause, depth + 1) };
}

/** 128 bits of randomness are 22 characters of base64url; the prefixes are those of our own tokens and of a JWT. */
const secretWord = /(?:\b(?:[sp]k_|rt_|eyJ)[\w.~+=-]*|[\w~+=-]{22,}(?:\.[\w~+=-]*)*)/g;
const mailAddress = /[^\s<>@]+@[^\s<>@]+/g;
const queryOfUrl = /\?\S*/g;
const lastWord = /\S*$/;

function withoutSecrets(text: string): string {
  return cutAtWord(text, 2 * foreignCharactersMax)
    .replace(queryOfUrl, '?...')
    .replace(mailAddress, '...')
    .replace(secretWord, '...')
    .slice(0, foreignCharactersMax);
}

/** Cut before the expressions run, so that they never run over much; the word at the cut goes, for it may be half a secret. */
function cutAtWord(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : text.slice(0, charactersMax).replace(lastWord, '');
}

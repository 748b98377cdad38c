/** JSON Pointer: RFC 6901 §3 and §4, the string form. The caller applies a pointer to a document. */

/** The unescaped reference tokens; an empty text is the whole document. Undefined if malformed. */
export function parseJsonPointer(text: string): readonly string[] | undefined {
  if (text === '') return [];
  if (text.charCodeAt(0) !== 0x2f) return undefined;
  const tokens = text.split('/');
  tokens.shift();
  if (!text.includes('~')) return tokens;
  for (let index = 0; index < tokens.length; index += 1) {
    const token = tokens[index] ?? '';
    for (let at = token.indexOf('~'); at !== -1; at = token.indexOf('~', at + 1)) {
      const digit = token.charCodeAt(at + 1);
      if (digit !== 0x30 && digit !== 0x31) return undefined;
    }
    // "~1" first: the other order would turn "~01" into "/" (RFC 6901 §4).
    tokens[index] = token.replaceAll('~1', '/').replaceAll('~0', '~');
  }
  return tokens;
}

export function formatJsonPointer(tokens: readonly (string | number)[]): string {
  let text = '';
  for (const token of tokens) text += `/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`;
  return text;
}

/**
 * What a rule says is signed, such as `{id}.{timestamp}.{body}`, taken apart once, and refused where it could not be verified: a mistake of
 * the program, not of a sender.
 */
import type { HmacRule } from './signature-rule.ts';

export type SignedPart = 'body' | 'timestamp' | 'id' | 'url' | 'form';

export type SignedTemplate = {
  /** In their order: a text as it stands, or a part of the message. */
  readonly pieces: readonly (SignedPiece | SignedText)[];
  /** What stands behind `{id}`, which an id must not hold: it could end elsewhere than where it was signed to end. May be empty. */
  readonly idEnd: string;
  readonly signsUrl: boolean;
  /** Whether it is the parameters of a form that are signed, and not the body. */
  readonly signsForm: boolean;
};

export type SignedPiece = { readonly part: SignedPart };
export type SignedText = { readonly text: string };

const parts: readonly string[] = ['body', 'timestamp', 'id', 'url', 'form'] satisfies SignedPart[];

/**
 * @throws TypeError for an unknown part, for a part that the rule gives no place of, for a place of what is not signed, and where not just
 * one of body and form is signed
 */
export function readTemplate(rule: HmacRule): SignedTemplate {
  const pieces = piecesOf(rule.signed);
  const has = (part: SignedPart) => pieces.some((piece) => 'part' in piece && piece.part === part);
  if (has('timestamp') !== (rule.timestamp !== undefined)) {
    throw new TypeError('a rule signs {timestamp} and says where it stands, or does neither');
  }
  if (has('id') !== (rule.id !== undefined)) {
    throw new TypeError('a rule signs {id} and says where it stands, or does neither');
  }
  if (has('body') === has('form')) throw new TypeError('a rule must sign either {body} or {form}');
  if (rule.bodyDigestParameter !== undefined && !(has('url') && has('form'))) {
    throw new TypeError('a digest in the URL says something where {url} and {form} are signed');
  }
  return { pieces, idEnd: idEndOf(pieces), signsUrl: has('url'), signsForm: has('form') };
}

function piecesOf(signed: string): readonly (SignedPiece | SignedText)[] {
  const pieces: (SignedPiece | SignedText)[] = [];
  let from = 0;
  while (from < signed.length) {
    const open = signed.indexOf('{', from);
    const close = signed.indexOf('}', open);
    if (open < 0 || close < 0) break;
    const name = signed.slice(open + 1, close);
    if (!isPart(name)) throw new TypeError(`a rule cannot sign {${name}}`);
    if (open > from) pieces.push({ text: signed.slice(from, open) });
    pieces.push({ part: name });
    from = close + 1;
  }
  if (from < signed.length) pieces.push({ text: signed.slice(from) });
  return pieces;
}

function idEndOf(pieces: readonly (SignedPiece | SignedText)[]): string {
  const at = pieces.findIndex((piece) => 'part' in piece && piece.part === 'id');
  const next = at < 0 ? undefined : pieces[at + 1];
  return next !== undefined && 'text' in next ? next.text.charAt(0) : '';
}

function isPart(name: string): name is SignedPart {
  return parts.includes(name);
}

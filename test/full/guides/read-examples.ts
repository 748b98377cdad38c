/**
 * The examples of a page of documentation. A fenced `sh` block is what a reader copies; the `http`, `json` or `text`
 * block right after it is what it prints, and without one it prints nothing. A comment before an `sh` block changes that:
 *
 *   <!-- not run: REASON -->   the block is for reading alone
 *   <!-- eventually -->        run again until it prints what is shown (what it asks for happens by itself)
 *   <!-- needs curl -->        run where the machine has a curl of its own: the block uses what test/full/guides/curl.ts has not
 *   <!-- in: CODE -->          before a block of TypeScript: the block is compiled in place of the `...` in CODE
 *   <!-- not compiled: REASON -->
 *
 * `<!-- program NAME=value ... -->` anywhere sets the environment of the program that the page talks to; with
 * `COMITY_DATABASE_URL=postgres` it has a database of its own, whose URL the commands of the page see too. The `ts` blocks
 * of a page that has an `export default` in one are, in order, the configuration that the program serves.
 */

export type Example = {
  /** Line of the page on which the block begins. */
  readonly line: number;
  readonly script: string;
  readonly expected: { readonly form: 'http' | 'json' | 'text'; readonly text: string } | undefined;
  readonly eventually: boolean;
  readonly needsCurl: boolean;
};

export type Page = {
  readonly examples: readonly Example[];
  readonly notRun: readonly { readonly line: number; readonly reason: string }[];
  readonly environment: Readonly<Record<string, string>>;
  readonly configuration: string | undefined;
};

type Part =
  | { readonly kind: 'fence'; readonly line: number; readonly language: string; readonly text: string }
  | { readonly kind: 'comment'; readonly line: number; readonly text: string }
  | { readonly kind: 'prose' };

const outputForms: ReadonlySet<string> = new Set(['http', 'json', 'text']);

/** Reads one page of Markdown. Throws for a comment that it does not know and for a fence that never ends. */
export function readExamples(markdown: string): Page {
  const parts = readParts(markdown);
  const examples: Example[] = [];
  const notRun: { line: number; reason: string }[] = [];
  const environment: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    if (part.kind === 'comment' && part.text.startsWith('program ')) {
      Object.assign(environment, readEnvironment(part.text));
    }
    if (part.kind !== 'fence' || part.language !== 'sh') continue;
    const before = parts[index - 1];
    const remark = before?.kind === 'comment' ? before.text : '';
    if (remark.startsWith('not run: ')) {
      notRun.push({ line: part.line, reason: remark.slice('not run: '.length) });
      continue;
    }
    const after = parts[index + 1];
    const expected =
      after?.kind === 'fence' && isOutputForm(after.language)
        ? { form: after.language, text: after.text }
        : undefined;
    examples.push({
      line: part.line,
      script: part.text,
      expected,
      eventually: remark === 'eventually',
      needsCurl: remark === 'needs curl',
    });
  }
  const blocks = parts.flatMap((part) =>
    part.kind === 'fence' && part.language === 'ts' ? [part.text] : [],
  );
  const isWhole = blocks.some((text) => text.includes('export default'));
  return { examples, notRun, environment, configuration: isWhole ? blocks.join('\n') : undefined };
}

function isOutputForm(language: string): language is 'http' | 'json' | 'text' {
  return outputForms.has(language);
}

function readEnvironment(comment: string): Record<string, string> {
  const pairs = comment.split(/\s+/).slice(1);
  return Object.fromEntries(pairs.map((pair) => [pair.split('=', 1)[0], pair.slice(pair.indexOf('=') + 1)]));
}

/** Around a table that `npm run clients` writes. */
const tableMark = /^(end of )?clients \S+$/;

function readParts(markdown: string): readonly Part[] {
  const lines = markdown.split('\n');
  const parts: Part[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    const fence = /^```(\w*)$/.exec(line);
    const comment = /^<!-- (.*) -->$/.exec(line);
    if (fence !== null) {
      const end = lines.indexOf('```', at + 1);
      if (end === -1) throw new Error(`line ${at + 1}: the fence never ends`);
      const text = `${lines.slice(at + 1, end).join('\n')}\n`;
      parts.push({ kind: 'fence', line: at + 1, language: fence[1] ?? '', text });
      at = end;
    } else if (comment !== null && !tableMark.test(comment[1] ?? '')) {
      const text = comment[1] ?? '';
      if (!/^(not run: \S|eventually$|needs curl$|program \S|not compiled: \S|in: .*\.\.\.)/.test(text)) {
        throw new Error(`line ${at + 1}: "${text}" means nothing to test/full/guides/read-examples.ts`);
      }
      parts.push({ kind: 'comment', line: at + 1, text });
    } else if (line.trim() !== '') parts.push({ kind: 'prose' });
  }
  return parts;
}

/** A block of TypeScript, in what it is a part of. */
export type CodeBlock = {
  /** The file that a command of the page writes. */
  readonly file: string | undefined;
  readonly text: string;
};

const hereDocument = /^cat > (\S+\.ts) <<'(\w+)'\n(.*?)^\2$/gms;

/** The blocks of TypeScript of a page, its configuration as one, and the files in it that its commands write by here-documents. */
export function readCode(markdown: string): readonly CodeBlock[] {
  const parts = readParts(markdown);
  const { configuration } = readExamples(markdown);
  const blocks = parts.flatMap((part, at): CodeBlock[] => {
    if (part.kind !== 'fence') return [];
    if (part.language === 'sh') {
      return [...part.text.matchAll(hereDocument)].map(([, file, , text = '']) => ({ file, text }));
    }
    const isPart = part.language === 'typescript' || (part.language === 'ts' && configuration === undefined);
    if (!isPart) return [];
    const before = parts[at - 1];
    const remark = before?.kind === 'comment' ? before.text : '';
    if (remark.startsWith('not compiled: ')) return [];
    const whole = /^in: (.*)/.exec(remark)?.[1];
    return [{ file: undefined, text: whole?.replace('...', () => part.text) ?? part.text }];
  });
  if (configuration !== undefined) blocks.unshift({ file: 'comity.config.ts', text: configuration });
  return blocks;
}

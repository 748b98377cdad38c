/**
 * Each file of src/, scripts/, bench/ and examples/ opens with a comment of one to ten lines that says what it is.
 *
 * Usage: node scripts/checks/headers.ts
 */
import type { CommentSpan } from '../parse-source.ts';
import { parseSource } from '../parse-source.ts';
import { listCode, readText } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

const headedFolders = ['src', 'scripts', 'bench', 'examples'];
const headerLinesMax = 10;
const headerLettersMin = 15;

/** Finds files that open with code, with a comment that says next to nothing, or with an essay. */
export function findHeaderProblems(root: string): readonly Problem[] {
  const problems: Problem[] = [];
  for (const file of listCode(root, headedFolders)) {
    const text = readText(root, file);
    const header = readHeader(text, parseSource(file, text).comments);
    const lines = header.filter((line) => line !== '').length;
    if (header.join('').length < headerLettersMin) {
      problems.push({ file, line: 1, message: 'The file does not begin with a comment that describes it' });
    } else if (lines > headerLinesMax) {
      const message = `The header has ${lines} lines, the limit is ${headerLinesMax}: move the rest to the code that it describes`;
      problems.push({ file, line: 1, message });
    }
  }
  return problems;
}

/** The words of the opening comment, line by line: one block, or line comments that follow each other. */
function readHeader(text: string, comments: readonly CommentSpan[]): readonly string[] {
  const firstLine = text.startsWith('#!') ? 2 : 1;
  const lines: string[] = [];
  let expected = firstLine;
  for (const comment of comments) {
    if (comment.line < firstLine) continue; // The parser may list the line that names the interpreter.
    if (comment.line !== expected) break;
    lines.push(...comment.text.split('\n').map((line) => line.replace(/^[\s*/]+/, '').trim()));
    if (comment.endLine > comment.line) break;
    expected = comment.endLine + 1;
  }
  return lines;
}

if (import.meta.main) await runAlone(findHeaderProblems);

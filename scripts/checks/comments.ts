/**
 * Each file of src/, conduct/, scripts/, bench/ and examples/ opens with a comment of one to ten lines that says what it is, a file or folder that a
 * comment of src/, conduct/, bench/ or test/ names exists, and comments of src/, conduct/ and scripts/ use no word that hides an action.
 *
 * Usage: node scripts/checks/comments.ts
 */
import { dirname, posix } from 'node:path';
import type { CommentSpan } from '../parse-source.ts';
import { parseSource } from '../parse-source.ts';
import { listCode, listFiles, readText } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

const headedFolders = ['src', 'conduct', 'scripts', 'bench', 'examples'];
const headerLinesMax = 10;
const headerLettersMin = 15;
/** A header in src/ or scripts/ names the thing or the action first. */
const indirectOpening = /^(?:Whether|What|How|Of)\b/;

/** Words that stand for an action or a person without a name, which a comment of src/ or scripts/ gives instead. */
const vagueWord = /\b(?:told|tells|whoever|nobody)\b/i;

/** Where a comment that names a file means one of the repository; a name in quotation marks or backticks is an example. */
const namingFolders = ['src', 'conduct', 'bench', 'test'];
const namedFile = /(?<![\w/.`'"-])(?:[\w-][\w.-]*\/)*[\w-][\w.-]*\.(?:tsx?|mjs)\b/g;
const namedFolder = /(?<![\w/.`'"-])(?:[a-z][\w-]*\/)+(?=[\s).,;:]|$)/g;
/** Made by the set-up. */
const builtFolder = 'dist/';

/** Finds files that open with code, with a comment that says next to nothing, or with an essay. */
export function findHeaderProblems(root: string): readonly Problem[] {
  const problems: Problem[] = [];
  for (const file of listCode(root, headedFolders)) {
    const text = readText(root, file);
    const header = readHeader(text, parseSource(file, text).comments);
    const lines = header.filter((line) => line !== '').length;
    if (header.join('').length < headerLettersMin) {
      problems.push({ file, line: 1, message: 'The file does not begin with a comment that describes it' });
    } else if (
      /^(?:src|conduct|scripts)\//.test(file) &&
      indirectOpening.test(header.find((line) => line !== '') ?? '')
    ) {
      problems.push({
        file,
        line: 1,
        message: 'The header begins with Whether, What, How or Of: name the thing or the action',
      });
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

/**
 * Finds files and folders that are named in comments and do not exist. A name alone means the file beside, or the only one of its name outside
 * bench/ and test/; a path may begin in any folder.
 */
export function findNamedFileProblems(root: string): readonly Problem[] {
  const problems: Problem[] = [];
  const files = listFiles(root);
  for (const file of listCode(root, namingFolders)) {
    for (const { text, line } of parseSource(file, readText(root, file)).comments) {
      for (const [index, words] of text.split('\n').entries()) {
        for (const [name] of words.matchAll(namedFile)) {
          const named = countNamed(name, file, files);
          if (named === 1) continue;
          const message =
            named === 0 ? `No file is named ${name}` : `${named} files are named ${name}: add the folder`;
          problems.push({ file, line: line + index, message });
        }
        for (const [name] of words.matchAll(namedFolder)) {
          if (name === builtFolder || files.some((each) => `/${each}`.includes(`/${name}`))) continue;
          problems.push({ file, line: line + index, message: `No folder is named ${name}` });
        }
      }
    }
  }
  return problems;
}

function countNamed(name: string, from: string, files: readonly string[]): number {
  if (files.includes(posix.join(dirname(from), name))) return 1;
  const named = files.filter((file) => file === name || file.endsWith(`/${name}`));
  if (name.includes('/')) return Math.min(named.length, 1);
  const product = named.filter((file) => !/^(bench|test)\//.test(file));
  return product.length || Math.min(named.length, 1);
}

/** Finds comments with vague words. */
export function findVagueWords(root: string): readonly Problem[] {
  const problems: Problem[] = [];
  for (const file of listCode(root, ['src', 'conduct', 'scripts'])) {
    for (const { text, line } of parseSource(file, readText(root, file)).comments) {
      for (const [index, words] of text.split('\n').entries()) {
        const [word] = vagueWord.exec(words) ?? [];
        if (word === undefined) continue;
        problems.push({
          file,
          line: line + index,
          message: `"${word}": name the action, or the one who acts`,
        });
      }
    }
  }
  return problems;
}

export function findCommentProblems(root: string): readonly Problem[] {
  return [...findHeaderProblems(root), ...findNamedFileProblems(root), ...findVagueWords(root)];
}

if (import.meta.main) await runAlone(findCommentProblems);

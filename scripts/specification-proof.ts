/**
 * The code that decides and the tests that prove the clauses of the specification: nodes and answers of the decision graph by the sections that they cite, test
 * files by the sections in their header and titles, and the tests that a clause names by title.
 */
import { answers } from '../src/http/conduct/answers.ts';
import { graph } from '../src/http/conduct/graph.ts';
import { parseSource } from './parse-source.ts';
import { expandCitation, listCitations } from './section-citations.ts';
import { listCode, readText } from './source-tree.ts';
import type { Clause } from './specification-pages.ts';

export type Proof = {
  /** Names of nodes and answers. */
  readonly deciders: readonly string[];
  /** Test files that cite the clause in their header or a title. */
  readonly files: readonly string[];
  /** Tests that the clause names, each with the files that have a test of that title: none is a mistake. */
  readonly tests: readonly { readonly title: string; readonly files: readonly string[] }[];
};

/** The sections of a node or an answer, as keys: `4.5.3` of ours, `RFC 9110 15.5.6` of a standard. */
type Decider = { readonly name: string; readonly keys: ReadonlySet<string> };

type TestFile = {
  readonly path: string;
  /** Our sections in its header and its titles. */
  readonly sections: ReadonlySet<string>;
  /** What it holds in quotes. */
  readonly literals: ReadonlySet<string>;
};

/** Returns a function that says what proves a clause. */
export function proofsOf(root: string): (clause: Clause) => Proof {
  const deciders = listDeciders();
  const files = listCode(root, ['test']).map((path) => readTestFile(root, path));
  return ({ number, standards, tests }) => {
    const keys = [number, ...standards.map(({ standard, section }) => `${standard} ${section}`)];
    return {
      deciders: deciders
        .filter((decider) => keys.some((key) => decider.keys.has(key)))
        .map(({ name }) => name),
      files: files.filter(({ sections }) => sections.has(number)).map(({ path }) => path),
      tests: tests.map((title) => ({
        title,
        files: files.filter(({ literals }) => literals.has(title)).map(({ path }) => path),
      })),
    };
  };
}

/** Nodes in the order of the graph, then answers. */
export function listDeciders(): readonly Decider[] {
  return [...Object.entries(graph), ...Object.entries(answers)].map(([name, { section }]) => ({
    name,
    keys: new Set(
      listCitations(section).map((cited) => [cited.standard, cited.section].filter(Boolean).join(' ')),
    ),
  }));
}

const title = /\b(?:test|it|describe|describeOnEachStore)(?:\.\w+)?\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g;
const literal = /(['"`])((?:\\.|(?!\1)[^\\\n])*)\1/g;

function readTestFile(root: string, path: string): TestFile {
  const text = readText(root, path);
  const header = path.endsWith('.test.ts') ? (parseSource(path, text).comments[0]?.text ?? '') : '';
  const titles = [...text.matchAll(title)].map((match) => match[2] ?? '');
  const own = [header, ...titles].flatMap(listCitations).filter(({ standard }) => standard === undefined);
  return {
    path,
    sections: new Set(own.flatMap(expandCitation)),
    literals: new Set([...text.matchAll(literal)].map((match) => match[2] ?? '')),
  };
}

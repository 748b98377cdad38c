/**
 * docs/specification holds together: every anchor is there once and says its own number, every link to one finds it, every clause has a test,
 * every test that a clause names exists, every node and answer of the decision graph belongs to a clause, and the clauses of the suite of
 * conduct are named by one clause each.
 *
 * Usage: node scripts/checks/specification.ts
 */
import { basename } from 'node:path/posix';
import { describeClauses } from '../../conduct/all-clauses.ts';
import { anchorOf, readSpecification, specificationFolder } from '../specification-pages.ts';
import { listDeciders, proofsOf } from '../specification-proof.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

/**
 * @param deciders names of the nodes and answers that must belong to a clause
 * @param suite ids of the suite of conduct
 */
export function findSpecificationProblems(
  root: string,
  deciders: readonly string[] = listDeciders().map(({ name }) => name),
  suite: readonly string[] = describeClauses().map(({ id }) => id),
): readonly Problem[] {
  const problems: Problem[] = [];
  const prove = proofsOf(root);
  const numbers = new Set<string>();
  const decided = new Set<string>();
  const judged = new Set<string>();
  const pages = readSpecification(root);
  const anchors = new Set(
    pages.flatMap(({ path, clauses }) =>
      clauses.map(({ number }) => `${basename(path)}#${anchorOf(number)}`),
    ),
  );
  for (const { path, clauses, links } of pages) {
    for (const { to, line } of links) {
      if (!anchors.has(to)) problems.push({ file: path, line, message: `${to} does not exist` });
    }
    for (const clause of clauses) {
      const tell = (message: string) => problems.push({ file: path, line: clause.line, message });
      const proof = prove(clause);
      for (const name of proof.deciders) decided.add(name);
      if (numbers.has(clause.number)) tell(`The anchor of clause ${clause.number} exists twice`);
      numbers.add(clause.number);
      if (clause.promises && clause.label !== clause.number)
        tell(`The anchor has the number ${clause.number}, but the text after it ${clause.label}`);
      if (clause.promises && proof.files.length + proof.tests.length + clause.conduct.length === 0)
        tell(
          `No test proves clause ${clause.number}: cite it in a test's header or title, or name a test by its title`,
        );
      for (const id of clause.conduct) {
        if (!suite.includes(id)) tell(`No clause of the suite of conduct has the id "${id}"`);
        if (judged.has(id)) tell(`Two clauses name "${id}" of the suite of conduct`);
        judged.add(id);
      }
      for (const { title, files } of proof.tests) {
        if (files.length === 0) tell(`No test has the title "${title}"`);
      }
    }
  }
  for (const id of suite.filter((each) => !judged.has(each))) {
    const message = `No clause names "${id}" of the suite of conduct: write it, or name it where it belongs`;
    problems.push({ file: specificationFolder, message });
  }
  for (const name of deciders) {
    if (!decided.has(name)) {
      const message = `No clause belongs to "${name}" of the decision graph: write it, or cite it in the section of the node`;
      problems.push({ file: specificationFolder, message });
    }
  }
  return problems;
}

if (import.meta.main) await runAlone((root) => findSpecificationProblems(root));

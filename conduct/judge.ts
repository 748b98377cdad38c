/**
 * A run of clauses against one target: a survey, then one clause after the other, so that the server is never asked more at a time than a
 * clause needs. What the run created it removes, and it names what it could not.
 */
import {
  type Clause,
  cannotApply,
  deviates,
  type Finding,
  type Group,
  type Verdict,
  verdictOf,
} from './clause.ts';
import type { Exchange } from './evidence.ts';
import { namingLeft } from './patience.ts';
import { surveyTarget } from './survey.ts';
import type { Target } from './target.ts';
import { CannotApply, NoAnswer, type Survey, Visit } from './visit.ts';

export type Judged = {
  readonly id: string;
  readonly title: string;
  readonly group: string;
  readonly section: string;
  readonly verdict: Verdict;
  /** What was found, a sentence; empty where the clause holds. */
  readonly why: string;
  /** The evidence, in order. */
  readonly exchanges: readonly Exchange[];
};

export type Report = {
  /** What was judged, such as the URL of a collection. */
  readonly subject: string;
  readonly summary: Readonly<Record<Verdict, number>>;
  readonly clauses: readonly Judged[];
  /** Paths of members that the server did not let the run remove. */
  readonly left: readonly string[];
};

export type Progress = (done: number, all: number, clause: Pick<Clause, 'id'>) => void;

type Run = { readonly mayWrite: boolean; readonly progress: Progress };

/** Judges the first of the targets whose sample can be created, or the first that can be read. */
export async function judgeApi(
  targets: readonly Target[],
  clauses: readonly Clause[],
  { mayWrite, progress }: Run,
): Promise<Report> {
  const { target, survey, remove } = await chooseTarget(targets, mayWrite);
  return naming(remove, () => judgeClauses({ target, survey, mayWrite }, clauses, progress));
}

/** Runs, and then removes what the run made; the report names what stays, and so does the error of a run that a limit ended. */
async function naming<T extends { readonly left: readonly string[] }>(
  remove: () => Promise<readonly string[]>,
  run: () => Promise<T>,
): Promise<T> {
  try {
    const report = await run();
    return { ...report, left: [...report.left, ...(await remove())] };
  } catch (error) {
    throw namingLeft(error, await remove());
  }
}

/** Judges by a survey that is known. */
export async function judgeClauses(
  { target, survey, mayWrite }: Subject,
  clauses: readonly Clause[],
  progress: Progress,
): Promise<Report> {
  const standing = new Visit(target, survey);
  const left: string[] = [];
  const remove = async (): Promise<readonly string[]> => [...left, ...(await standing.end())];
  const subject = { target, survey, mayWrite, standing, left };
  return naming(remove, () => judgeEach(subject, clauses, progress));
}

type Sequence = Subject & {
  /** What the sequence itself asks. */
  readonly standing: Visit;
  /** Takes what clauses could not remove. */
  readonly left: string[];
};

async function judgeEach(
  { target, survey, mayWrite, standing, left }: Sequence,
  clauses: readonly Clause[],
  progress: Progress,
): Promise<Report> {
  const judged: Judged[] = [];
  let current = survey;
  for (const [index, clause] of clauses.entries()) {
    progress(index, clauses.length, clause);
    let one = await judgeOne(clause, { target, survey: current, mayWrite });
    left.push(...one.left);
    if (one.finding.kind === 'deviates' && (await isGone(standing, current))) {
      // The clause is not to blame for what another lost: it gets another member.
      current = await replaceMember(standing, current);
      one = await judgeOne(clause, { target, survey: current, mayWrite });
      left.push(...one.left);
    }
    const { finding, exchanges } = one;
    const { id, title, group, section } = clause;
    const why = 'why' in finding ? finding.why : '';
    judged.push({ ...{ id, title, group, section, why, exchanges }, verdict: verdictOf(clause, finding) });
  }
  return {
    subject: `${target.url}${target.collection}`,
    summary: summaryOf(judged),
    clauses: judged,
    left: [],
  };
}

export function summaryOf(judged: readonly Pick<Judged, 'verdict'>[]): Report['summary'] {
  const count = (verdict: Verdict): number => judged.filter((each) => each.verdict === verdict).length;
  return {
    holds: count('holds'),
    fails: count('fails'),
    warning: count('warning'),
    'not-applicable': count('not-applicable'),
  };
}

/** The clauses of each group, in the order of the first of each. */
export function byGroup<T extends { readonly group: string }>(
  clauses: readonly T[],
): readonly (readonly [group: string, clauses: readonly T[]])[] {
  return [...Map.groupBy(clauses, ({ group }) => group)];
}

/** The clauses whose id or group is named; all where none is. @returns a name that is neither, as a mistake */
export function selectClauses(
  clauses: readonly Clause[],
  names: readonly string[],
): { readonly clauses: readonly Clause[] } | { readonly unknown: string } {
  if (names.length === 0) return { clauses };
  const unknown = names.find(
    (name) => !clauses.some(({ id, group }) => id === name || group === (name as Group)),
  );
  if (unknown !== undefined) return { unknown };
  return { clauses: clauses.filter(({ id, group }) => names.includes(id) || names.includes(group)) };
}

async function chooseTarget(targets: readonly Target[], mayWrite: boolean) {
  let chosen: { target: Target; survey: Survey; remove: () => Promise<readonly string[]> } | undefined;
  let unreadable: NoAnswer | undefined;
  for (const target of targets) {
    const surveyed = await trySurvey(target, mayWrite);
    if (surveyed instanceof NoAnswer) {
      unreadable ??= surveyed;
      continue;
    }
    if (mayWrite && surveyed.survey.cannotCreate === undefined) {
      await chosen?.remove();
      return surveyed;
    }
    if (chosen === undefined) chosen = surveyed;
    else await surveyed.remove();
  }
  if (chosen === undefined) throw unreadable ?? new NoAnswer('there is no target');
  return chosen;
}

/** A survey, or why there can be none. */
async function trySurvey(target: Target, mayWrite: boolean) {
  try {
    return { target, ...(await surveyTarget(target, mayWrite)) };
  } catch (error) {
    if (error instanceof NoAnswer) return error;
    throw error;
  }
}

type Subject = { readonly target: Target; readonly survey: Survey; readonly mayWrite: boolean };

async function judgeOne(clause: Clause, { target, survey, mayWrite }: Subject) {
  const visit = new Visit(target, survey);
  return naming(visit.end, async () => {
    const finding = await findingOf(clause, visit, mayWrite);
    return { finding, exchanges: visit.exchanges, left: [] };
  });
}

/** True if the member that stands while clauses run is there no longer. */
async function isGone(standing: Visit, survey: Survey): Promise<boolean> {
  if (survey.member === undefined || survey.cannotCreate !== undefined) return false;
  const outcome = await standing.attempt({ method: 'GET', path: survey.member });
  return !('none' in outcome) && [404, 410].includes(outcome.status);
}

/** A survey with a new member, which stays where the server loses members; the one that is gone is noted. */
async function replaceMember(standing: Visit, survey: Survey): Promise<Survey> {
  const gone = [...survey.gone, survey.member ?? ''];
  try {
    return { ...survey, gone, member: (await standing.create()).path };
  } catch (error) {
    if (error instanceof CannotApply || error instanceof NoAnswer) return { ...survey, gone };
    throw error;
  }
}

async function findingOf(clause: Clause, visit: Visit, mayWrite: boolean): Promise<Finding> {
  if (clause.writes === true && !mayWrite) return cannotApply('it writes, and the run may not');
  try {
    return await clause.judge(visit);
  } catch (error) {
    if (error instanceof CannotApply) return cannotApply(error.message);
    // A server that gives no answer where one is due breaks the clause that asked.
    if (error instanceof NoAnswer) return deviates(error.message);
    throw error;
  }
}

/** PATCH and its formats (RFC 5789, RFC 7396, RFC 6902). */
import { type Answer, fieldOf, jsonOf, listOf, type Members } from '../answer.ts';
import { type Clause, cannotApply, deviates, holds, holdsIf, warns } from '../clause.ts';
import { differencesOf, documentIn, membersOf, operationsOf } from '../document.ts';
import { jsonPatch, mergePatch } from '../survey.ts';
import { changeOf } from '../target.ts';
import { CannotApply, type Visit } from '../visit.ts';
import { isRefusal, missingPath, sameState } from './subjects.ts';

export const patchClauses: readonly Clause[] = [
  {
    id: 'patch-accept',
    group: 'patch',
    title: 'OPTIONS of a resource that takes PATCH has Accept-Patch',
    section: 'RFC 5789 §3.1',
    level: 'should',
    judge: async ({ send, survey }) => {
      if (survey.member === undefined || survey.memberAllow?.has('PATCH') !== true)
        return cannotApply('the Allow of a member does not list PATCH');
      const answer = await send({ method: 'OPTIONS', path: survey.member });
      return holdsIf(
        fieldOf(answer, 'Accept-Patch') !== undefined,
        'the answer to OPTIONS has no Accept-Patch',
      );
    },
  },
  {
    id: 'patch-unsupported',
    group: 'patch',
    title: 'A patch of an unknown format is answered 415 with Accept-Patch and changes nothing',
    section: 'RFC 5789 §2.2',
    level: 'should',
    writes: true,
    judge: async (visit) => {
      const { path } = await patchable(visit);
      const before = await visit.send({ method: 'GET', path });
      const headers = { 'Content-Type': 'application/x-conduct-unknown' };
      const answer = await visit.send({ method: 'PATCH', path, content: 'conduct', headers });
      if (!sameState(before, await visit.send({ method: 'GET', path })))
        return deviates('the member changed');
      if (answer.status !== 415) return deviates(`it is answered ${answer.status}`);
      return holdsIf(listOf(answer, 'Accept-Patch').length > 0, 'the 415 has no Accept-Patch');
    },
  },
  {
    id: 'patch-malformed',
    group: 'patch',
    title: 'A patch that is not of its format is refused with 4xx',
    section: 'RFC 5789 §2.2',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path, type } = await patchable(visit);
      const { status } = await visit.send({
        method: 'PATCH',
        path,
        content: '{"a":',
        headers: { 'Content-Type': type },
      });
      if (!isRefusal(status)) return deviates(`JSON that does not end is answered ${status}`);
      return [400, 422].includes(status) ? holds : warns(`JSON that does not end is answered ${status}`);
    },
  },
  {
    id: 'patch-missing',
    group: 'patch',
    title: 'A patch of a member that does not exist is answered 404',
    section: 'RFC 5789 §2.2',
    level: 'should',
    writes: true,
    judge: async (visit) => {
      const { type, patch } = await patchable(visit);
      const path = missingPath(visit);
      const { status } = await visit.send({
        method: 'PATCH',
        path,
        json: patch,
        headers: { 'Content-Type': type },
      });
      if (status < 300) visit.removeLater(path);
      return holdsIf([404, 410].includes(status), `it is answered ${status}`);
    },
  },
  {
    id: 'merge-patch-rest',
    group: 'patch',
    title: 'A merge patch changes the members that it names and no other',
    section: 'RFC 7396 §2',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path } = await accepting(visit, mergePatch);
      const change = changeOf(visit.target) ?? {};
      const before = documentOf(visit, await visit.send({ method: 'GET', path }));
      const { status } = await visit.send({
        method: 'PATCH',
        path,
        json: change,
        headers: { 'Content-Type': mergePatch },
      });
      if (status >= 300) return deviates(`the merge patch is answered ${status}`);
      const after = documentOf(visit, await visit.send({ method: 'GET', path }));
      const [other] = differencesOf(after, change);
      if (other !== undefined) return deviates(`${other} is ${JSON.stringify(after[other])} after the patch`);
      const rest = Object.keys(membersOf(visit.sample())).filter((name) => !(name in membersOf(change)));
      const lost = differencesOf(after, before, rest);
      return holdsIf(lost.length === 0, `${lost.join(', ')} changed as well`);
    },
  },
  {
    id: 'json-patch-applied',
    group: 'patch',
    title: 'A JSON Patch is applied operation by operation',
    section: 'RFC 6902 §3',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path, operations, change } = await operable(visit);
      const { status } = await visit.send({
        method: 'PATCH',
        path,
        json: operations,
        headers: jsonPatchFields,
      });
      if (status >= 300) return deviates(`the patch is answered ${status}`);
      const other = differencesOf(documentOf(visit, await visit.send({ method: 'GET', path })), change);
      return holdsIf(other.length === 0, `${other.join(', ')} is another after the patch`);
    },
  },
  {
    id: 'json-patch-atomic',
    group: 'patch',
    title: 'A JSON Patch whose test fails is refused and leaves the resource as it was',
    section: 'RFC 6902 §5',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path, operations } = await operable(visit);
      const failing = { op: 'test', path: operations[0]?.path, value: 'conduct-never' };
      return leftAsItWas(visit, path, [...operations, failing]);
    },
  },
  {
    id: 'json-patch-path',
    group: 'patch',
    title: 'A JSON Patch that replaces what is not there is refused and leaves the resource as it was',
    section: 'RFC 6902 §4.3',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path, operations } = await operable(visit);
      const absent = { op: 'replace', path: '/conductNotThere', value: 1 };
      return leftAsItWas(visit, path, [...operations, absent]);
    },
  },
  {
    id: 'json-patch-form',
    group: 'patch',
    title: 'A JSON Patch that is no array of operations is refused with 4xx',
    section: 'RFC 6902 §3',
    level: 'must',
    writes: true,
    judge: async (visit) => {
      const { path } = await operable(visit);
      for (const json of [{ op: 'replace' }, [{ op: 'conduct', path: '/a' }]]) {
        const { status } = await visit.send({ method: 'PATCH', path, json, headers: jsonPatchFields });
        if (!isRefusal(status)) return deviates(`${JSON.stringify(json)} is answered ${status}`);
      }
      return holds;
    },
  },
];

const jsonPatchFields = { 'Content-Type': jsonPatch };

async function leftAsItWas(visit: Visit, path: string, json: readonly unknown[]) {
  const before = await visit.send({ method: 'GET', path });
  const { status } = await visit.send({ method: 'PATCH', path, json, headers: jsonPatchFields });
  const after = await visit.send({ method: 'GET', path });
  if (!sameState(before, after))
    return deviates(`it is answered ${status}, and its first operation was made`);
  return holdsIf(isRefusal(status), `it is answered ${status}`);
}

/** A member, and a patch of a format that it takes. */
async function patchable(visit: Visit): Promise<{ path: string; type: string; patch: unknown }> {
  const type = [mergePatch, 'application/json', jsonPatch].find((each) => visit.survey.patchTypes.has(each));
  const change = changeOf(visit.target);
  if (type === undefined || change === undefined)
    throw new CannotApply('a member takes no patch that the suite knows');
  const { path } = await visit.create();
  return { path, type, patch: type === jsonPatch ? operationsOf(change) : change };
}

async function accepting(visit: Visit, type: string): Promise<{ path: string }> {
  if (!visit.survey.patchTypes.has(type)) throw new CannotApply(`a member does not take ${type}`);
  return visit.create();
}

/** A member that has what the change names, and the operations that replace it. */
async function operable(visit: Visit) {
  const { path } = await accepting(visit, jsonPatch);
  const change = changeOf(visit.target);
  if (change === undefined) throw new CannotApply('the target has no change to make');
  const document = documentOf(visit, await visit.send({ method: 'GET', path }));
  const absent = Object.keys(membersOf(change)).find((name) => !(name in document));
  if (absent !== undefined) throw new CannotApply(`the sample has no ${absent} that a patch could replace`);
  return { path, change, operations: operationsOf(change) };
}

function documentOf({ target }: Pick<Visit, 'target'>, answer: Answer): Members {
  return documentIn(jsonOf(answer), target.idMember);
}
